// Package ledger knows which record comes when and which records have been
// committed: Order is the shuffled sequence of an epoch, Book the account of
// what has been committed, by positions in those orders.
//
// It hands nothing out and knows no workers: that is the coordinator's queue.
//
// Entry points: NewOrder and Book.
package ledger
