// Package model describes networks as plain data: layers, the shapes between
// them, and the flat vector of their parameters that servers, checkpoints and
// engines share. A plan checks a model with it, and a parameter server lays out
// its vector without an engine.
//
// It computes nothing except initial values. Engines compute (package engine),
// updates of the vector are in optimizer, ready models in zoo. It imports nothing
// of this project except spec.
//
// Entry points: Model, Model.Layout, Model.Init.
package model
