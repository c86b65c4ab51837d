/* Each program has a table of accesses, in the section `.known`: the address, which compiler and linker compute, the
 * number of bytes, the path, which is mostly the expression itself, the type, and structure, member and offset. */
struct known {
    const volatile void *address;
    unsigned long long size;
    const char *path, *type, *member;
};
#define KNOWN __declspec(allocate(".known")) extern const struct known
#define AT(expression, type, member) {&(expression), sizeof(expression), #expression, type, member}
#define BYTES(base, offset, size, path, type, member) {(const char *)&(base) + (offset), size, path, type, member}
#pragma section(".known", read)
