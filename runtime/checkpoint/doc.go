// Package checkpoint stores a run's checkpoints: a folder or a bucket (Place)
// with one part for each process that holds a span of the parameters, and a
// Manifest that names the parts.
//
// A checkpoint is complete or absent. Its parts are written first, each under a
// name that no other process uses; the manifest is written last, in one piece,
// and with it the checkpoint begins to exist. Removing one starts with its
// manifest.
//
// It does not know the holders of parameters or the times of checkpoints, and
// uses only the storage.
//
// Entry points: Folder and Open.
package checkpoint
