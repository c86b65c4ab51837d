/* A loop whose rare call is in the middle of its frequent code, as long as no profile says how rare it is. The program
 * prints where it is, waits for a line, executes the loop, and waits again. */
#include <stdio.h>
#include <windows.h>

__attribute__((noinline)) unsigned rare(unsigned sum) { return sum * 2654435761u ^ sum >> 7; }

__attribute__((noinline)) unsigned work(const unsigned char *data, unsigned count)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < count; i++) {
        if (data[i] < 16)
            sum = rare(sum);
        else
            sum += data[i] ^ sum >> 3;
    }
    return sum;
}

int main(void)
{
    static unsigned char data[4096];
    unsigned state = 1;
    for (unsigned i = 0; i < sizeof data; i++) {
        state = state * 1664525 + 1013904223;
        data[i] = (unsigned char)(state >> 24);
    }
    printf("process %lu thread %lu base %llx work %llx\n", GetCurrentProcessId(), GetCurrentThreadId(),
           (unsigned long long)(size_t)GetModuleHandle(NULL), (unsigned long long)(size_t)work);
    fflush(stdout);
    if (getchar() == EOF)
        return 1;
    printf("sum %u\n", work(data, sizeof data));
    fflush(stdout);
    getchar();
    return 0;
}
