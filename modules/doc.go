// Package modules reads configurations: from HCL files to a checked tree of
// modules, and from tfvars files, flags and the environment to the values of
// the root module's variables.
//
// It evaluates nothing beyond literals: expressions and bodies are kept as
// hcl.Expression and hcl.Body for plan/eval. It knows no providers, so it
// cannot tell whether a resource type or an argument exists.
//
// Load is its entry point; Values comes next.
package modules
