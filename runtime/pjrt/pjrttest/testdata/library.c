// A library that answers as cuDNN does.
#include <stddef.h>

size_t cudnnGetVersion(void) { return 91900; }
