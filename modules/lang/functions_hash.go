package lang

import (
	"crypto/md5"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/gocty"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/ssh"
)

// digest is a hash with the way its sum is written.
type digest struct {
	new    func() hash.Hash
	encode func([]byte) string
}

var (
	hexMD5       = digest{md5.New, hex.EncodeToString}
	hexSHA1      = digest{sha1.New, hex.EncodeToString}
	hexSHA256    = digest{sha256.New, hex.EncodeToString}
	hexSHA512    = digest{sha512.New, hex.EncodeToString}
	base64SHA256 = digest{sha256.New, base64.StdEncoding.EncodeToString}
	base64SHA512 = digest{sha512.New, base64.StdEncoding.EncodeToString}
)

// ofText is the function that hashes a string.
func (d digest) ofText() function.Function {
	return ofStrings(func(a []string) (string, error) {
		h := d.new()
		h.Write([]byte(a[0]))
		return d.encode(h.Sum(nil)), nil
	}, "str")
}

var rsadecryptFunc = ofStrings(func(a []string) (string, error) {
	sealed, err := base64.StdEncoding.DecodeString(a[0])
	if err != nil {
		return "", function.NewArgErrorf(0, "it is not base64")
	}
	raw, err := ssh.ParseRawPrivateKey([]byte(a[1]))
	if err != nil {
		return "", function.NewArgErrorf(1, "it is not a private key in PEM without a passphrase")
	}
	key, ok := raw.(*rsa.PrivateKey)
	if !ok {
		return "", function.NewArgErrorf(1, "it is no RSA key")
	}
	//lint:ignore SA1019 the function is defined by this padding
	text, err := rsa.DecryptPKCS1v15(nil, key, sealed)
	if err != nil {
		return "", function.NewArgErrorf(0, "it was not encrypted for this key")
	}
	return string(text), nil
}, "ciphertext", "privatekey")

var uuidv5Func = ofStrings(func(a []string) (string, error) {
	namespaces := map[string]uuid.UUID{
		"dns": uuid.NameSpaceDNS, "url": uuid.NameSpaceURL, "oid": uuid.NameSpaceOID, "x500": uuid.NameSpaceX500,
	}
	space, ok := namespaces[a[0]]
	if !ok {
		var err error
		if space, err = uuid.Parse(a[0]); err != nil {
			return "", function.NewArgErrorf(0, "it must be dns, url, oid, x500 or a UUID")
		}
	}
	return uuid.NewSHA1(space, []byte(a[1])).String(), nil
}, "namespace", "name")

// impure makes a function whose result differs with every call: while a plan
// is made it is not known yet.
func impure(planning bool, spec function.Spec) function.Function {
	spec.Type = function.StaticReturnType(cty.String)
	spec.RefineResult = notNull
	if planning {
		spec.Impl = func([]cty.Value, cty.Type) (cty.Value, error) { return cty.UnknownVal(cty.String), nil }
	}
	return function.New(&spec)
}

var uuidSpec = function.Spec{
	Impl: func([]cty.Value, cty.Type) (cty.Value, error) {
		id, err := uuid.NewRandom()
		return cty.StringVal(id.String()), err
	},
}

var bcryptSpec = function.Spec{
	Params:   []function.Parameter{{Name: "str", Type: cty.String}},
	VarParam: &function.Parameter{Name: "cost", Type: cty.Number},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		cost := bcrypt.DefaultCost
		if len(args) > 2 {
			return cty.NilVal, function.NewArgErrorf(2, "bcrypt takes a string and at most one cost")
		}
		if len(args) == 2 {
			if err := gocty.FromCtyValue(args[1], &cost); err != nil {
				return cty.NilVal, function.NewArgError(1, err)
			}
		}
		sum, err := bcrypt.GenerateFromPassword([]byte(args[0].AsString()), cost)
		return cty.StringVal(string(sum)), err
	},
}
