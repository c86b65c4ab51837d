/* Without optimization: every variable is on the stack. */
struct node { struct node *next; int value; };
struct pair { struct node nodes[2]; long long sum; };
int _fltused;

__declspec(dllexport) int walk(struct node *node, int step)
{
    struct pair pair;
    pair.nodes[1].value = step;
    pair.sum = node->next->value;
    return (int)pair.sum + pair.nodes[1].value;
}

int entry(void) { return walk(0, 1); }
