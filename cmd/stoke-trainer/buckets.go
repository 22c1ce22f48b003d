//go:build !race

package main

// The drivers of buckets that checkpoints may be in. The clients of clouds compile for
// minutes under the race detector: such a binary has none.
import (
	_ "gocloud.dev/blob/gcsblob" // gs://
	_ "gocloud.dev/blob/s3blob"  // s3://
)
