package storetest

import (
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// signed reports whether a request is signed with the secret key, by computing the
// signature again:
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
func (s *S3) signed(r *http.Request) bool {
	given := r.Header.Get("Authorization")
	fields := map[string]string{}
	for part := range strings.SplitSeq(strings.TrimPrefix(given, "AWS4-HMAC-SHA256 "), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		fields[name] = value
	}
	scope := strings.Split(fields["Credential"], "/") // key, day, region, service, "aws4_request"
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if len(scope) != 5 || err != nil || scope[3] != "s3" || time.Since(at).Abs() > 15*time.Minute {
		return false
	}
	again, err := http.NewRequest(r.Method, "http://"+r.Host+r.URL.RequestURI(), nil)
	if err != nil {
		return false
	}
	for name := range strings.SplitSeq(fields["SignedHeaders"], ";") {
		switch name {
		case "host": // in the URL
		case "content-length":
			again.ContentLength = r.ContentLength
		default:
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	credentials := aws.Credentials{AccessKeyID: s.AccessKey, SecretAccessKey: s.SecretKey, SessionToken: r.Header.Get("X-Amz-Security-Token")}
	err = v4.NewSigner().SignHTTP(r.Context(), credentials, again, r.Header.Get("X-Amz-Content-Sha256"), scope[3], scope[2], at,
		func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	return err == nil && again.Header.Get("Authorization") == given
}
