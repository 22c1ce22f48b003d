// Package ledger determines the order of records and keeps account of committed
// ones: Order is the shuffled sequence of an epoch, Book the committed records,
// by positions in those orders.
//
// It hands nothing out and knows no workers: that is the coordinator's queue.
//
// Entry points: NewOrder and Book.
package ledger
