// Package builtin is the provider terraform.io/builtin/terraform, which needs
// no declaration: the resource terraform_data, a value that is kept in state,
// passes through the plan and can force replacements, and the data source
// terraform_remote_state, the outputs of another state. They behave as
// Terraform 1.11's do, but that outputs stay sensitive on the way.
//
// It implements providers.Provider itself, without a framework and without an
// encoding, because configurations hold it by the thousand. Entry is what the
// catalogue takes.
package builtin
