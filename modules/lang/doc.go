// Package lang is the expression language of configurations beyond what HCL
// defines: what a reference such as metal_node.gpu["x"].gpus is about
// (ParseReference), which functions there are (NewFunctions), and which marks
// values carry (Sensitive, Ephemeral).
//
// It evaluates no references: plan/eval does, with what it finds here.
package lang
