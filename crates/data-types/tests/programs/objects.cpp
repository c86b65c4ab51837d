// Data of C++: nested structures, bases, templates, bit fields, unions, anonymous members, and padding.
#include "known.h"

namespace shop {
struct Lock { int owner; char state; };
struct Row { long long key; Lock lock; double prices[3]; };
struct Table { int count; Row rows[4]; Row *first; };
enum class Color : unsigned char { red, green };
}
shop::Table table;
static shop::Lock hidden;
shop::Row rows[3];

struct Flags {
    unsigned ready : 1, level : 5, : 2, code : 12;
    unsigned long long wide : 40;
    const bool last : 1;
};
Flags flags{0, 0, 0, 0, false};

union Value {
    int number;
    float real;
    struct { short low, high; } halves;
    unsigned char bytes[8];
};
Value value;
struct Message { int kind; Value value; union { long long whole; struct { int low, high; }; }; struct { char a; short b; } inner; };
Message message;

struct Shape { virtual int area(); int id; };
int Shape::area() { return id; }
struct Named { const char *name; };
struct Empty {};
struct Square : Shape, Named, Empty { int side; int area() override; };
int Square::area() { return side * side; }
Square square;
struct Big : Square { Square inner; shop::Color color; };
Big big;
struct Virtual : virtual Named { int own; };
Virtual derived;

template <typename T, int N> struct Ring { T items[N]; unsigned head, tail; };
Ring<shop::Lock, 3> ring;
Ring<Ring<short, 2>, 2> rings;
template <typename A, typename B> struct Pair { A first; B second; };
Pair<Pair<char, int>, Pair<const char *, volatile double *>> pair;

int matrix[3][5];
struct Holder { int grid[2][3]; shop::Lock locks[2][2]; };
Holder holder;
extern const volatile shop::Color color;
const volatile shop::Color color = shop::Color::green;
struct Counter { static int total; int own; };
int Counter::total;
int (*function)(shop::Row *);
int shop::Row::*to_member;
shop::Row &reference = rows[1];
#pragma pack(push, 1)
struct Packed { char tag; long long number; short tail; };
#pragma pack(pop)
Packed packed;
struct alignas(64) Line { long long hits; };
Line lines[2];
struct Padded { char a; long long b; short c; };
Padded padded;
thread_local int per_thread;
double real;

extern "C" int *calls_of() {
    static int calls[4];
    __declspec(allocate(".known")) __attribute__((used)) static const struct known known_calls[] = {AT(calls[2], "int", "")};
    return calls;
}
struct Recursive { Recursive *next; struct Later *later; };
Recursive list;
struct Later { int value; };

KNOWN known_objects[] = {
    AT(table.count, "int", "shop::Table.count@0"),
    AT(table.rows[0].key, "__int64", "shop::Row.key@0"),
    AT(table.rows[2].lock.owner, "int", "shop::Row.lock.owner@8"),
    AT(table.rows[3].lock.state, "char", "shop::Row.lock.state@12"),
    AT(table.rows[3].prices[2], "double", "shop::Row.prices[]@16"),
    AT(table.first, "shop::Row*", "shop::Table.first@168"),
    AT(hidden.state, "char", "shop::Lock.state@4"),
    AT(rows[1].lock.owner, "int", "shop::Row.lock.owner@8"),
    BYTES(table, 4, 4, "table (padding after count)", "shop::Table", "shop::Table.(padding after count)@4"),
    BYTES(rows[2].lock, 5, 1, "rows[2].lock (padding after state)", "shop::Lock",
          "shop::Row.lock (padding after state)@13"),
    BYTES(rows[0].key, 4, 4, "rows[0].key+0x4", "__int64", "shop::Row.key@0"),
    BYTES(flags, 0, 1, "flags.ready|level", "unsigned:1|unsigned:5", "Flags.ready|level@0"),
    BYTES(flags, 1, 1, "flags.code", "unsigned:12", "Flags.code@0"),
    BYTES(flags, 2, 1, "flags.code", "unsigned:12", "Flags.code@0"),
    BYTES(flags, 3, 1, "flags (padding after code)", "Flags", "Flags.(padding after code)@3"),
    BYTES(flags, 0, 4, "flags.ready|level|code", "unsigned:1|unsigned:5|unsigned:12", "Flags.ready|level|code@0"),
    BYTES(flags, 12, 1, "flags.wide", "unsigned __int64:40", "Flags.wide@8"),
    BYTES(flags, 13, 1, "flags (padding after wide)", "Flags", "Flags.(padding after wide)@13"),
    BYTES(flags, 16, 1, "flags.last", "const bool:1", "Flags.last@16"),
    BYTES(value, 0, 4, "value.number|real|halves.low|bytes[0]", "int|float|short|unsigned char",
          "Value.number|real|halves.low|bytes[]@0"),
    BYTES(value, 2, 1, "value.number+0x2|real+0x2|halves.high|bytes[2]", "int|float|short|unsigned char",
          "Value.number|real|halves.high|bytes[]@0"),
    BYTES(value, 6, 2, "value.bytes[6]", "unsigned char", "Value.bytes[]@0"),
    BYTES(message.value, 5, 1, "message.value.bytes[5]", "unsigned char", "Message.value.bytes[]@4"),
    BYTES(message, 20, 4, "message.whole+0x4|high", "__int64|int", "Message.whole|high@16"),
    BYTES(message, 12, 4, "message (padding after value)", "Message", "Message.(padding after value)@12"),
    AT(message.inner.b, "short", "Message.inner.b@26"),
    BYTES(message.inner, 1, 1, "message.inner (padding after a)", "Message::<unnamed-type-inner>",
          "Message.inner (padding after a)@25"),
    BYTES(square, 0, 8, "square.__vfptr", "vftable*", "Square.__vfptr@0"),
    AT(square.id, "int", "Square.id@8"),
    AT(square.name, "const char*", "Square.name@16"),
    AT(square.side, "int", "Square.side@24"),
    AT(big.id, "int", "Big.id@8"),
    AT(big.inner.name, "const char*", "Big.inner.name@48"),
    AT(big.color, "shop::Color", "Big.color@64"),
    AT(ring.items[1].state, "char", "shop::Lock.state@4"),
    AT(ring.tail, "unsigned", "Ring<shop::Lock,3>.tail@28"),
    AT(rings.items[1].items[1], "short", "Ring<short,2>.items[]@0"),
    AT(rings.head, "unsigned", "Ring<Ring<short,2>,2>.head@24"),
    AT(pair.first.second, "int", "Pair<Pair<char,int>,Pair<const char *,volatile double *> >.first.second@4"),
    AT(pair.second.second, "volatile double*",
       "Pair<Pair<char,int>,Pair<const char *,volatile double *> >.second.second@16"),
    AT(matrix[2][4], "int", ""),
    AT(holder.grid[1][2], "int", "Holder.grid[][]@0"),
    AT(holder.locks[1][0].owner, "int", "shop::Lock.owner@0"),
    AT(color, "const volatile shop::Color", ""),
    AT(Counter::total, "int", ""),
    AT(function, "function*", ""),
    AT(to_member, "int shop::Row::*", ""),
    BYTES(reference, 8, 4, "rows[1].lock.owner", "int", "shop::Row.lock.owner@8"),
    AT(packed.number, "__int64", "Packed.number@1"),
    AT(packed.tail, "short", "Packed.tail@9"),
    AT(lines[1].hits, "__int64", "Line.hits@0"),
    BYTES(lines[1], 8, 8, "lines[1] (padding after hits)", "Line", "Line.(padding after hits)@8"),
    BYTES(padded, 1, 1, "padded (padding after a)", "Padded", "Padded.(padding after a)@1"),
    BYTES(padded, 18, 2, "padded (padding after c)", "Padded", "Padded.(padding after c)@18"),
    AT(list.later, "Later*", "Recursive.later@8"),
    AT(real, "double", ""),
    BYTES(derived, 0, 8, "derived.__vbptr", "const int*", "Virtual.__vbptr@0"),
    BYTES(derived, 8, 4, "derived.own", "int", "Virtual.own@8"),
    BYTES(derived, 16, 8, "derived (virtual base)", "Virtual", "Virtual.(virtual base)@0"),
};

extern "C" int _tls_index = 0;
extern "C" int _fltused = 0;
extern "C" int entry() {
    Later later{3};
    list.later = &later;
    per_thread = calls_of()[1]++ + list.later->value + hidden.owner++;
    return per_thread + Counter{}.own;
}
