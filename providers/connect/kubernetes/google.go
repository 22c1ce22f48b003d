package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"golang.org/x/oauth2/google"

	"github.com/stokehq/stoke/providers/connect"
)

// cloudPlatform is the scope that Google's API servers take tokens of,
// https://cloud.google.com/kubernetes-engine/docs/how-to/api-server-authentication
const cloudPlatform = "https://www.googleapis.com/auth/cloud-platform"

// google makes a source of tokens. It asks for none yet.
func (e *endpoint) google(k connect.Google) error {
	ctx := context.Background() // of the source, which lives as long as the client
	if k.CredentialsFile == "" {
		e.credential = "Google's application default credentials"
		found, err := google.FindDefaultCredentials(ctx, cloudPlatform)
		if err != nil {
			return errors.New("there are none: run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS or credentials_file")
		}
		e.tokens = found.TokenSource
		return nil
	}
	e.credential = "Google's credentials in " + k.CredentialsFile
	path, err := connect.ExpandHome(k.CredentialsFile)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var head struct {
		Type google.CredentialsType `json:"type"`
	}
	if err := json.Unmarshal(text, &head); err != nil || head.Type == "" {
		return errors.New("it is no file of Google's credentials")
	}
	found, err := google.CredentialsFromJSONWithType(ctx, text, head.Type, cloudPlatform)
	if err != nil {
		return fmt.Errorf("it cannot be used as %q", head.Type) // the library's error may quote it
	}
	e.tokens = found.TokenSource
	return nil
}
