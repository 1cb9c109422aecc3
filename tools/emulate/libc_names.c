// The emulator's wheel asks for two names of a C library newer than Debian 12's. They differ from
// the older functions in reading "0b" numbers only, which nothing here uses.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

unsigned long long __isoc23_strtoull(const char *text, char **end, int base) {
    return strtoull(text, end, base);
}

int __isoc23_sscanf(const char *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int read = vsscanf(text, format, args);
    va_end(args);
    return read;
}
