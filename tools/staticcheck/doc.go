// Staticcheck is honnef.co/go/tools/cmd/staticcheck, except that without -whole
// it does not look into the functions of other modules, for which it needs more
// time than for ours. Five checks then do not know which of those functions have
// no effect (SA4017, SA4018, S1011), never return nil (SA4023) or take pairs of
// arguments (SA5012).
package main
