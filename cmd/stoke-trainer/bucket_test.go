//go:build !race

package main

import (
	"context"
	"errors"
	"io/fs"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stokehq/stoke/plan/state/store/storetest"
	"github.com/stokehq/stoke/runtime/checkpoint"
)

// Who has no credentials is told so, where, and what to do.
func TestBucketsWithoutCredentials(t *testing.T) {
	for name, value := range map[string]string{
		"HOME": t.TempDir(), "AWS_EC2_METADATA_DISABLED": "true", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "",
		"GOOGLE_APPLICATION_CREDENTIALS": "", "GCE_METADATA_HOST": "",
	} {
		t.Setenv(name, value)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for address, want := range map[string]string{
		"s3://models/runs/one?region=eu-west-1": "AWS_ACCESS_KEY_ID",
		"gs://models/runs/one":                  "GOOGLE_APPLICATION_CREDENTIALS",
	} {
		place, err := checkpoint.Open(ctx, address)
		if err == nil {
			defer place.Close()
			_, err = place.Names(ctx, "step-")
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), address) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Checkpoints lie in a bucket as in a folder: here with servers that speak
// Amazon's and Google's protocols and refuse what those refuse.
func TestCheckpointsInABucket(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	s3 := httptest.NewServer(&storetest.S3{Bucket: "models", AccessKey: "key", SecretKey: "secret"})
	t.Cleanup(s3.Close)
	gcs := httptest.NewServer(&storetest.GCS{Bucket: "models"})
	t.Cleanup(gcs.Close)
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(gcs.URL, "http://"))
	for name, address := range map[string]string{
		"s3":  "s3://models/runs/one?region=eu-west-1&use_path_style=true&endpoint=" + s3.URL,
		"gcs": "gs://models/runs/one?access_id=-",
	} {
		t.Run(name, func(t *testing.T) {
			place, err := checkpoint.Open(t.Context(), address)
			if err != nil {
				t.Fatal(err)
			}
			defer place.Close()
			ctx := t.Context()
			if found, err := place.Names(ctx, "step-"); err != nil || len(found) > 0 {
				t.Fatalf("an empty bucket has %q (%v)", found, err)
			}
			if _, err := place.Manifest(ctx, "step-1"); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("a manifest that is not there: %v", err)
			}
			values := make([]float32, 100_000)
			for i := range values {
				values[i] = float32(i)
			}
			for _, step := range []string{"step-1", "step-2"} {
				part, err := place.Save(ctx, step, "server-0.f32", 0, [][]float32{values, values})
				if err != nil {
					t.Fatal(err)
				}
				if err := place.Finish(ctx, step, &checkpoint.Manifest{Step: 1, Parts: []checkpoint.Part{part}}); err != nil {
					t.Fatal(err)
				}
			}
			given, err := place.Create(ctx, "step-3", "server-0.f32")
			if err != nil {
				t.Fatal(err)
			}
			if err := given.Write(values); err != nil {
				t.Fatal(err)
			}
			given.Abort()
			if err := place.Remove(ctx, "step-1"); err != nil {
				t.Fatal(err)
			}
			if err := place.Clean(ctx, "step-"); err != nil {
				t.Fatal(err)
			}
			found, err := place.Names(ctx, "step-")
			if err != nil || !slices.Equal(found, []string{"step-2"}) {
				t.Fatalf("checkpoints %q (%v)", found, err)
			}
			m, err := place.Manifest(ctx, "step-2")
			if err != nil {
				t.Fatal(err)
			}
			if ok, err := place.Complete(ctx, "step-2", m); !ok || err != nil {
				t.Errorf("not complete (%v)", err)
			}
			for i, want := range []bool{true, false} {
				if ok, err := place.Claim(ctx, "sha256:0123456789abcdef", 7); ok != want || err != nil {
					t.Errorf("claim %d of a term: %v, %v", i+1, ok, err)
				}
			}
			if highest, err := place.Claimed(ctx, "sha256:0123456789abcdef"); highest != 7 || err != nil {
				t.Errorf("the highest claimed term is %d (%v)", highest, err)
			}
			back := [][]float32{make([]float32, 500), make([]float32, 500)}
			if err := place.Load(ctx, "step-2", m.Parts, 70_000, 70_500, back); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(back[0], values[70_000:70_500]) || !slices.Equal(back[1], back[0]) {
				t.Error("other values than were saved")
			}
		})
	}
}
