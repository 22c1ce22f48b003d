// Ranktest is a user's program for tests, in the shape of a data-parallel one: in each step
// all ranks add up, rank 0 writes checkpoints, and a rank without its peer ends with an
// error. With serve, ranks of the role ps never end.
package main
