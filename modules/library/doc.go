// Package library holds ready modules that are part of the program. A
// configuration calls one by the source library//NAME; init writes its files
// next to other modules, where users can read and change them.
//
// It holds files and knows nothing about what they say. Files is its entry
// point.
package library
