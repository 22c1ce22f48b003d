// Package checkpoint is where a run's checkpoints lie, and what they consist
// of: a folder or a bucket (Place) with one part for each process that holds a
// span of the parameters, and a Manifest that names them.
//
// A checkpoint is complete or absent. Its parts are written first, each under
// a name that nobody else uses; the manifest is written last, in one piece, and
// with it the checkpoint begins to exist. Removing one starts with its
// manifest.
//
// It knows neither who holds the parameters nor when a checkpoint is due, and
// speaks to nobody but the storage.
//
// Entry points: Folder and Open.
package checkpoint
