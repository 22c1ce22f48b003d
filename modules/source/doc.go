// Package source knows where modules come from: it reads source addresses,
// fetches what they name (git repositories, archives over HTTP and on disk,
// module registries) into a folder, and reads and writes the manifest of
// what is installed, in Terraform's format.
//
// Everything that it fetches is taken for hostile: nothing is run but git and
// xz, no argument can become an option, archives are unpacked within bounds
// and cannot write or link out of their folder, and a folder is whole or it
// is not there.
//
// It knows neither configurations nor which modules they call; package
// modules/install does. Parse and Fetcher are its entry points.
package source
