/* A structure of the same name as in `records.c`, with another member. */
struct shared { long long second_file; };
struct shared *other_shared;
int other(void) { return (int)other_shared->second_file; }
