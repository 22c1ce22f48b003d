// Package ps is a parameter server: it holds one contiguous span of the flat
// parameter vector with its optimizer slots, keeps the workers' pushes apart,
// and applies exactly the pushes that the coordinator names, in the given
// order, so that the result does not depend on the workers' speed.
//
// It decides nothing: which contributions make an update, whether one is
// skipped and when a checkpoint is cut is the coordinator's business. It knows
// no model and no data.
//
// Entry point: New, then Server.Serve.
package ps
