// Package seal keeps secrets out of files that others may get to see: saved
// plans, which travel through pipelines as artefacts, and journals.
//
// A Box, made by New from a secret, encrypts and authenticates texts and
// signs what stays readable. A secret is 32 random bytes (Random), or made
// from what a person chose by Stretch, which takes long on purpose.
//
// The package knows neither plans nor states and keeps no keys; who calls it
// decides where a secret lives.
package seal
