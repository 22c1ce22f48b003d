// Package install puts the modules that a configuration calls where every
// other command finds them: .terraform/modules, with a manifest, in the
// layout that Terraform has too, so that each can use what the other has
// installed.
//
// A module is there as a whole or not at all; one that is used several times
// is fetched once; what nobody has changed stays as it is, without a question
// to anybody.
//
// It fetches nothing itself, which is package modules/source's work, and it
// reads no configuration, which is package modules'. Installer is its entry
// point.
package install
