// Package builtin is the provider terraform.io/builtin/terraform, which needs
// no declaration: the resource terraform_data, a value that is kept in state,
// passes through the plan and can force replacements. It behaves as
// Terraform 1.11's does.
//
// It implements providers.Provider itself, without a framework and without an
// encoding, because configurations hold it by the thousand. Entry is what the
// catalogue takes.
package builtin
