// Functions whose memory operands are known, in the order of the code. The test has the names.
struct Payload { char text[12]; unsigned size; };
struct Node { Node *next; int value; short counts[6]; Payload *payload; Node *&link() { return next; } };
struct Pair { int key; long long value; };
struct View { const Pair *first; unsigned long long length; };
struct Flexible { int length; int items[1]; };
struct Base { virtual int area() const; int id; };
struct Derived : Base { Payload payload; int area() const override; };

#define FUNCTION extern "C" __declspec(dllexport, noinline)
extern "C" int _fltused = 0;
Node *root;
Node nodes[4];
Derived derived;

// Members through a parameter; through a pointer that only a temporary has; and through a list.
FUNCTION int value(Node *node) { return node->value; }
FUNCTION unsigned payload_size(Node *node) { return node->payload->size; }
FUNCTION unsigned third(const Node &node) { return node.next->next->payload->size; }
FUNCTION int sum(Node *node) {
    int sum = 0;
    for (; node; node = node->next)
        sum += node->value;
    return sum;
}
// An element of an array in a structure, of an array of structures, and of an array of numbers.
FUNCTION short count(Node *node, long long i) { return node->counts[i]; }
FUNCTION long long nth(const Pair *pairs, unsigned long long i) { return pairs[i].value; }
struct Three { long long first, second, third; };
FUNCTION long long nth_of_three(const Three *threes, unsigned long long i) { return threes[i].second; }
FUNCTION long long fourth(const Pair *pairs) { return pairs[3].value; }
FUNCTION int number(const int *numbers, long long i) { return numbers[i]; }
FUNCTION int first(const int *numbers) { return *numbers; }
FUNCTION int item(const Flexible *flexible) { return flexible->items[7]; }
// The end of an array, with an index that can be negative.
struct Counts { int counts[4]; int sum; };
FUNCTION int behind(const Counts *counts, long long i) { return (&counts->sum)[i]; }
// Through a global, and its address.
FUNCTION int root_value() { return root->value; }
FUNCTION int node_value(int i) { return nodes[i & 3].value; }
// A structure whose parts are in registers or were passed by address.
FUNCTION long long view_first(View view) { return view.first->value; }
FUNCTION unsigned virtual_size(const Derived *shape) { return shape->payload.size + shape->area(); }
int Base::area() const { return id; }
int Derived::area() const { return payload.text[3]; }
// Variables of the stack.
extern "C" __declspec(noinline) void fill(Pair *pairs, int *number);
FUNCTION long long local() {
    Pair pairs[3];
    int number;
    fill(pairs, &number);
    return pairs[1].value + number;
}
// The types say nothing, no variable has the address any more, or it depends on the way.
FUNCTION int opaque(void *data) { return ((int *)data)[2]; }
struct Incomplete;
FUNCTION int incomplete(Incomplete *data) { return *((int *)data + 2); }
FUNCTION int join(Node *one, Node *other, bool which) { return (which ? one : other)->payload->size; }
// What a call leaves.
FUNCTION int after_call(Node *node) {
    int value = sum(node);
    return value + node->value;
}
extern "C" void fill(Pair *pairs, int *number) { pairs[0].key = *number = 1; }
extern "C" int entry() { return value(root); }
