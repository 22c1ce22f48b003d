// Package image builds OCI images without Docker: a base image or none, the
// trainer's binary, a user's files and Python wheels.
//
// Equal inputs give an image of equal digest, on every machine. It knows no
// Terraform, keeps no credentials, and starts no program of the image.
//
// Entry points: Collect lists what goes in, Contents.Build makes the image,
// Registry reads base images and pushes, Archive writes and reads tarballs.
package image
