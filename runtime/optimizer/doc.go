// Package optimizer applies updates to the flat vector of a model's parameters,
// or to a span of it. Servers call it, and engines that keep the parameters on
// their device.
//
// Which updates are applied, and when, is the coordinator's: this package knows
// neither records nor members.
//
// Entry points: Recipe, Update.
package optimizer
