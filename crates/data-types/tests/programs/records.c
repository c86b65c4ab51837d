/* Data of C, where structures have no decorated names: those of `records2.c` share names and differ. */
#include "known.h"

struct point { int x, y; };
struct segment { struct point from, to; struct segment *next; };
struct segment segments[3];
static struct { int plain; struct { char deep[6]; } inner; } nameless;
union word { unsigned all; struct { unsigned low : 16, high : 16; }; unsigned short halves[2]; };
union word words[2];
struct flexible { int length; char bytes[]; };
struct { struct flexible head; char rest[12]; } buffer = {{12}, "hello"};
enum mode { OFF, ON } mode;
typedef struct node { struct node *left, *right; enum mode mode; } node;
node *root;
node nodes[2];
_Bool truth;
unsigned char bytes[16];
struct shared { int first_file; };
struct shared *shared;

int other(void);
_Complex double complex_number;
long long big_array[1000];

KNOWN known_records[] = {
    AT(segments[1].to.y, "int", "segment.to.y@12"),
    AT(segments[2].next, "segment*", "segment.next@16"),
    AT(nameless.plain, "int", "<unnamed-tag>.plain@0"),
    AT(nameless.inner.deep[5], "char", "<unnamed-tag>.inner.deep[]@4"),
    BYTES(words[1], 0, 2, "words[1].all|low|halves[0]", "unsigned|unsigned:16|unsigned short",
          "word.all|low|halves[]@0"),
    BYTES(words[1], 2, 2, "words[1].all+0x2|high|halves[1]", "unsigned|unsigned:16|unsigned short",
          "word.all|high|halves[]@0"),
    AT(buffer.head.length, "int", "<unnamed-tag>.head.length@0"),
    AT(buffer.rest[3], "char", "<unnamed-tag>.rest[]@4"),
    AT(mode, "mode", ""),
    AT(root, "node*", ""),
    AT(nodes[1].mode, "mode", "node.mode@16"),
    AT(truth, "bool", ""),
    AT(bytes[15], "unsigned char", ""),
    AT(big_array[999], "__int64", ""),
    BYTES(complex_number, 8, 8, "complex_number+0x8", "_Complex double", ""),
};

int work(struct segment *segment, int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += segment[i].to.x;
    return sum;
}

__declspec(dllexport) int first_file(void) { return shared->first_file; }

int entry(void)
{
    nameless.plain++;
    return work(segments, 3) + first_file() + other() + nameless.inner.deep[2];
}
