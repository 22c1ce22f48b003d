// Package local keeps a state in files, with the names that Terraform has for
// them: terraform.tfstate, terraform.tfstate.backup, the journal
// terraform.tfstate.journal and the lock .terraform.tfstate.lock.info.
//
// All files have mode 0600. The snapshot is replaced in one step and synced
// with its folder. A lock belongs to a process and vanishes with it, however
// it dies; on Linux Terraform and stoke keep each other out.
//
// It knows nothing of what the files hold. New is its entry point.
package local
