// Package slot shares the devices of one machine among the processes of all its
// users: a device has one slot, and at most one process has it.
//
// A slot is a lock of the kernel on a file, so that a process that ends in any way
// gives its slot back. The package opens no device, and does not know which
// processes use devices without a slot.
//
// The entry point is Take.
package slot
