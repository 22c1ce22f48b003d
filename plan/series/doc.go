// Package series makes curves of the numbers measured in a run: a bounded number of
// points for each metric of the run and for each number of a role's usage.
//
// A history may have millions of events, and a screen some hundred columns. A
// series that is full merges its neighbours, so that memory is bounded and all of
// the run stays visible: minimum, maximum and weighted mean of each part.
//
// Entry points: NewSet, Set, Series.
package series
