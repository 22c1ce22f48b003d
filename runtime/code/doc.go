// Package code takes snapshots of folders of code: which files a program needs,
// one hash over their names, modes and contents, and the way of those files to
// other machines as a tar stream.
//
// Files that a root file .stokeignore names are left out. It has the syntax of
// gitignore, without character classes such as [[:alpha:]] and only at the root.
// Some files are left out by default, because they change without a change of
// the code: folders of version control, caches of Python, virtual environments,
// configurations and states of stoke and Terraform. A line such as "!*.tf" takes
// such a file in again. Folders without files, owners and times are not part of a
// snapshot, and of a file's mode only the executable bit is.
//
// Runs and programs are elsewhere.
//
// Entry points: Read, Diff, Snapshot.Pack, Unpack.
package code
