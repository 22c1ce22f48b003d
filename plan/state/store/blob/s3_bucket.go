package blob

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/stokehq/stoke/plan/state/store/object"
)

// s3Bucket is an object.Bucket in S3; versions are ETags.
type s3Bucket struct {
	client   *s3.Client
	name     string
	acl, kms string
	encrypt  bool
	attempts int          // at reading one object
	customer *customerKey // nil for none
}

// customerKey is a key of the customer's and its digest, in base64.
type customerKey struct{ key, sum string }

const customerAlgorithm = "AES256"

// certificates reads a file of authorities; nil where none is named.
func certificates(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(expandHome([]string{path})[0])
	if err != nil {
		return nil, fmt.Errorf("custom_ca_bundle: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("custom_ca_bundle: %s holds no certificate", path)
	}
	return pool, nil
}

// Name is the URL of an object.
func (b *s3Bucket) Name(key string) string { return "s3://" + b.name + "/" + key }

// Get reads an object.
func (b *s3Bucket) Get(ctx context.Context, key string) ([]byte, string, error) {
	in := &s3.GetObjectInput{Bucket: &b.name, Key: &key}
	if b.customer != nil {
		in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = aws.String(customerAlgorithm), &b.customer.key, &b.customer.sum
	}
	var last error
	for range b.attempts { // the library does not read again what broke off
		out, err := b.client.GetObject(ctx, in)
		if code(err) == "NoSuchKey" {
			return nil, "", nil
		}
		if err != nil {
			return nil, "", s3Problem(err)
		}
		data, err := readObject(out)
		if err == nil {
			return data, aws.ToString(out.ETag), nil
		}
		if last = err; ctx.Err() != nil {
			break
		}
	}
	return nil, "", s3Problem(last)
}

func readObject(out *s3.GetObjectOutput) ([]byte, error) {
	defer out.Body.Close()
	if aws.ToString(out.ETag) == "" {
		return nil, errors.New("the service gives no ETags, without which writes cannot be conditional")
	}
	data, err := io.ReadAll(out.Body)
	if err == nil && out.ContentLength != nil && *out.ContentLength != int64(len(data)) {
		err = io.ErrUnexpectedEOF
	}
	return data, err
}

// Put writes an object if its ETag is still ifVersion.
func (b *s3Bucket) Put(ctx context.Context, key string, data []byte, ifVersion string) (string, error) {
	in := &s3.PutObjectInput{
		Bucket: &b.name, Key: &key, Body: bytes.NewReader(data), ContentLength: aws.Int64(int64(len(data))),
		ContentType: aws.String("application/json"), ACL: types.ObjectCannedACL(b.acl),
	}
	if ifVersion == "" {
		in.IfNoneMatch = aws.String("*")
	} else {
		in.IfMatch = &ifVersion
	}
	switch {
	case b.customer != nil:
		in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = aws.String(customerAlgorithm), &b.customer.key, &b.customer.sum
	case b.encrypt && b.kms != "":
		in.ServerSideEncryption, in.SSEKMSKeyId = types.ServerSideEncryptionAwsKms, &b.kms
	case b.encrypt:
		in.ServerSideEncryption = types.ServerSideEncryptionAes256
	}
	out, err := b.client.PutObject(ctx, in)
	for range 3 {
		if code(err) != "ConditionalRequestConflict" { // others write at this moment: S3 wants to be asked again
			break
		}
		in.Body = bytes.NewReader(data)
		out, err = b.client.PutObject(ctx, in)
	}
	if err != nil {
		if ifVersion != "" && (code(err) == "NoSuchKey" || status(err) == http.StatusNotFound && code(err) != "NoSuchBucket") {
			return "", object.ErrConflict // it was removed meanwhile
		}
		return "", s3Problem(err)
	}
	if aws.ToString(out.ETag) == "" {
		return "", errors.New("the service gives no ETags, without which writes cannot be conditional")
	}
	return *out.ETag, nil
}

// Delete removes an object if its ETag is still ifVersion. Services that
// cannot tell remove any, as S3 itself did for long.
func (b *s3Bucket) Delete(ctx context.Context, key, ifVersion string) error {
	in := &s3.DeleteObjectInput{Bucket: &b.name, Key: &key}
	if ifVersion != "" {
		in.IfMatch = &ifVersion
	}
	_, err := b.client.DeleteObject(ctx, in)
	if ifVersion != "" && (code(err) == "NotImplemented" || status(err) == http.StatusNotImplemented) {
		in.IfMatch = nil
		_, now, err2 := b.Get(ctx, key)
		if err2 != nil {
			return err2
		}
		if now != ifVersion && now != "" {
			return object.ErrConflict
		}
		_, err = b.client.DeleteObject(ctx, in)
	}
	if err == nil || code(err) == "NoSuchKey" || status(err) == http.StatusNotFound && code(err) != "NoSuchBucket" {
		return nil
	}
	return s3Problem(err)
}

// List names objects.
func (b *s3Bucket) List(ctx context.Context, prefix string, shallow bool) ([]string, error) {
	in := &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &prefix}
	if shallow {
		in.Delimiter = aws.String("/")
	}
	var keys []string
	for pages := s3.NewListObjectsV2Paginator(b.client, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, s3Problem(err)
		}
		for _, o := range page.Contents {
			keys = append(keys, aws.ToString(o.Key))
		}
	}
	return keys, nil
}

// code is the service's name for an error, "" for others.
func code(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}

// status is the HTTP status of an error's answer; 0 where there was none.
func status(err error) int {
	var amazon *awshttp.ResponseError
	var google *gcsError
	switch {
	case errors.As(err, &amazon):
		return amazon.HTTPStatusCode()
	case errors.As(err, &google):
		return google.status
	}
	return 0
}

// s3Problem puts what the service says in words for people.
func s3Problem(err error) error {
	if err == nil {
		return nil
	}
	said := s3Said(err)
	switch c := code(err); {
	case c == "PreconditionFailed", c == "ConditionalRequestConflict", status(err) == http.StatusPreconditionFailed:
		return object.ErrConflict
	case c == "NoSuchBucket":
		return fmt.Errorf("there is no such bucket, and stoke makes none: %w", said)
	case c == "NotImplemented":
		return fmt.Errorf("the service does not know conditional writes (If-Match, If-None-Match), without which two runs could overwrite each other: %w", said)
	case c == "PermanentRedirect", c == "AuthorizationHeaderMalformed", c == "IllegalLocationConstraintException", status(err) == http.StatusMovedPermanently:
		return fmt.Errorf("the bucket is in another region; set region to that: %w", said)
	case c == "ExpiredToken", c == "InvalidAccessKeyId", c == "SignatureDoesNotMatch":
		return fmt.Errorf("S3 does not accept the credentials: %w", said)
	case c == "AccessDenied", status(err) == http.StatusForbidden:
		return fmt.Errorf("S3 does not allow it; s3:ListBucket on the bucket, and s3:GetObject, s3:PutObject and s3:DeleteObject on its objects do: %w", said)
	}
	return said
}

// s3Said is what the service answered; other errors stay as they are.
func s3Said(err error) error {
	var e smithy.APIError
	if !errors.As(err, &e) {
		return err
	}
	text := fmt.Sprintf("%s (%d", e.ErrorCode(), status(err))
	var answer *awshttp.ResponseError
	if errors.As(err, &answer) && answer.ServiceRequestID() != "" {
		text += ", request " + answer.ServiceRequestID()
	}
	text += ")"
	if m := strings.TrimSuffix(e.ErrorMessage(), "."); m != "" && m != e.ErrorCode() {
		text += ": " + m
	}
	return errors.New(text)
}
