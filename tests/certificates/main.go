// Tells what Go's own TLS says of certificates. With the argument `make` it writes the cases, with new certificates, some of them those
// that `make` (the script beside this file) left in the folder; else it reads cases from the standard input, and writes each with the
// answer of a client in it: `refused` is its error, and empty if it accepts the server.
package main

import (
	"bufio"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// row is a case: a server that shows a chain, and a client that expects a name and trusts roots.
type row struct {
	Name    string `json:"name"`
	Server  string `json:"server"`
	Refused string `json:"refused"`
	Roots   string `json:"roots"`
	Chain   string `json:"chain"`
	Key     string `json:"key"`
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "make" {
		for _, row := range made(os.Args[2]) {
			write(row)
		}
		return
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var of row
		check(json.Unmarshal(lines.Bytes(), &of))
		write(of)
	}
	check(lines.Err())
}

// write prints a row with what a client says of it.
func write(of row) {
	of.Refused = verdict(of)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	check(out.Encode(of))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// verdict is the error of a handshake, without the time of its day.
func verdict(of row) string {
	pair, err := tls.X509KeyPair([]byte(of.Chain), []byte(of.Key))
	check(err)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(of.Roots)) {
		return "no roots"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	defer listener.Close()
	go func() {
		stream, err := listener.Accept()
		check(err)
		server := tls.Server(stream, &tls.Config{Certificates: []tls.Certificate{pair}})
		// It fails with the client.
		_ = server.Handshake()
		stream.Close()
	}()
	stream, err := net.Dial("tcp", listener.Addr().String())
	check(err)
	defer stream.Close()
	err = tls.Client(stream, &tls.Config{RootCAs: roots, ServerName: of.Server}).Handshake()
	if err == nil {
		return ""
	}
	text, _, _ := strings.Cut(err.Error(), ": current time")
	return text
}

// identity is a certificate and its key.
type identity struct {
	certificate *x509.Certificate
	key         crypto.Signer
	pem         string
}

var serial int64

// template has the names of a server, and is an authority, as `openssl req -x509` makes one.
func template(change func(*x509.Certificate)) *x509.Certificate {
	serial++
	of := &x509.Certificate{
		SerialNumber:          big.NewInt(serial),
		Subject:               pkix.Name{CommonName: fmt.Sprintf("hook.test %d", serial)},
		DNSNames:              []string{"hook.test"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:             time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC),
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	if change != nil {
		change(of)
	}
	return of
}

// issue signs a template by an issuer, or by its own key.
func issue(of *x509.Certificate, issuer *identity) *identity {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	return issueFor(of, key, issuer)
}

func issueFor(of *x509.Certificate, key crypto.Signer, issuer *identity) *identity {
	parent, signer := of, key
	if issuer != nil {
		parent, signer = issuer.certificate, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, of, parent, key.Public(), signer)
	check(err)
	parsed, err := x509.ParseCertificate(der)
	check(err)
	return &identity{parsed, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

func (of *identity) keyPEM() string {
	der, err := x509.MarshalPKCS8PrivateKey(of.key)
	check(err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// changes are those of a certificate that is its own root, each with the name that a client expects.
var changes = []struct {
	name, server string
	change       func(*x509.Certificate)
}{
	{"an authority", "hook.test", nil},
	{"an authority, by its address", "127.0.0.1", nil},
	{"no authority", "hook.test", func(of *x509.Certificate) { of.IsCA = false }},
	{"without basic constraints", "hook.test", func(of *x509.Certificate) { of.BasicConstraintsValid, of.IsCA = false, false }},
	{"another name", "other.test", nil},
	{"another address", "127.0.0.2", nil},
	{"no names", "hook.test", func(of *x509.Certificate) { of.DNSNames, of.IPAddresses = nil, nil }},
	{"the common name alone", "hook.test", func(of *x509.Certificate) {
		of.DNSNames, of.IPAddresses, of.Subject.CommonName = nil, nil, "hook.test"
	}},
	{"addresses alone", "hook.test", func(of *x509.Certificate) { of.DNSNames = nil }},
	{"an address as a name", "127.0.0.1", func(of *x509.Certificate) {
		of.DNSNames, of.IPAddresses = []string{"127.0.0.1"}, nil
	}},
	{"a mail address alone", "hook.test", func(of *x509.Certificate) {
		of.DNSNames, of.IPAddresses, of.EmailAddresses = nil, nil, []string{"a@hook.test"}
	}},
	{"a wildcard", "a.hook.test", func(of *x509.Certificate) { of.DNSNames = []string{"*.hook.test"} }},
	{"a wildcard of two labels", "a.b.hook.test", func(of *x509.Certificate) { of.DNSNames = []string{"*.hook.test"} }},
	{"a wildcard of no label", "hook.test", func(of *x509.Certificate) { of.DNSNames = []string{"*.hook.test"} }},
	{"a wildcard inside a label", "ab.hook.test", func(of *x509.Certificate) { of.DNSNames = []string{"a*.hook.test"} }},
	{"a wildcard alone", "hook", func(of *x509.Certificate) { of.DNSNames = []string{"*"} }},
	{"upper case", "hook.test", func(of *x509.Certificate) { of.DNSNames = []string{"HOOK.Test"} }},
	{"upper case of the client", "HOOK.test", nil},
	{"a dot behind the name", "hook.test", func(of *x509.Certificate) { of.DNSNames = []string{"hook.test."} }},
	{"an underscore", "my_hook.test", func(of *x509.Certificate) { of.DNSNames = []string{"my_hook.test"} }},
	{"expired", "hook.test", func(of *x509.Certificate) { of.NotAfter = time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC) }},
	{"not yet valid", "hook.test", func(of *x509.Certificate) { of.NotBefore = time.Date(2110, 1, 1, 0, 0, 0, 0, time.UTC) }},
	{"key usage: signature", "hook.test", usage(x509.KeyUsageDigitalSignature)},
	{"key usage: certificates", "hook.test", usage(x509.KeyUsageCertSign)},
	{"key usage: encipherment", "hook.test", usage(x509.KeyUsageKeyEncipherment)},
	{"key usage: agreement", "hook.test", usage(x509.KeyUsageKeyAgreement)},
	{"key usage: revocations", "hook.test", usage(x509.KeyUsageCRLSign)},
	{"key usage: all", "hook.test", usage(0x1ff)},
	{"for servers", "hook.test", extended(x509.ExtKeyUsageServerAuth)},
	{"for clients", "hook.test", extended(x509.ExtKeyUsageClientAuth)},
	{"for both", "hook.test", extended(x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth)},
	{"for any", "hook.test", extended(x509.ExtKeyUsageAny)},
	{"for code", "hook.test", extended(x509.ExtKeyUsageCodeSigning)},
	{"for an unknown purpose", "hook.test", func(of *x509.Certificate) {
		of.UnknownExtKeyUsage = []asn1.ObjectIdentifier{{1, 2, 3, 4}}
	}},
	{"an unknown extension", "hook.test", extension(false)},
	{"a critical unknown extension", "hook.test", extension(true)},
	{"constraints that permit the name", "hook.test", func(of *x509.Certificate) { of.PermittedDNSDomains = []string{"test"} }},
	{"critical constraints that permit the name", "hook.test", func(of *x509.Certificate) {
		of.PermittedDNSDomains, of.PermittedDNSDomainsCritical = []string{"test"}, true
	}},
	{"constraints that exclude the name", "hook.test", func(of *x509.Certificate) { of.ExcludedDNSDomains = []string{"hook.test"} }},
	{"a path of length 0", "hook.test", func(of *x509.Certificate) { of.MaxPathLenZero = true }},
}

func usage(usage x509.KeyUsage) func(*x509.Certificate) {
	return func(of *x509.Certificate) { of.KeyUsage = usage }
}

func extended(usages ...x509.ExtKeyUsage) func(*x509.Certificate) {
	return func(of *x509.Certificate) { of.ExtKeyUsage = usages }
}

func extension(critical bool) func(*x509.Certificate) {
	return func(of *x509.Certificate) {
		of.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3, 4}, Critical: critical, Value: []byte{5, 0}}}
	}
}

func notAuthority(of *x509.Certificate) { of.IsCA = false }

func expired(of *x509.Certificate) { of.NotAfter = time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC) }

func made(folder string) []row {
	var rows []row
	add := func(name, server, roots string, shown *identity, intermediates ...*identity) {
		chain := shown.pem
		for _, one := range intermediates {
			chain += one.pem
		}
		rows = append(rows, row{Name: name, Server: server, Roots: roots, Chain: chain, Key: shown.keyPEM()})
	}
	for _, of := range changes {
		shown := issue(template(of.change), nil)
		add("itself: "+of.name, of.server, shown.pem, shown)
	}
	rows = append(rows, ofTools(folder)...)
	bundles(add)
	chains(add)
	return rows
}

// ofTools are the certificates that tools made, each its own root.
func ofTools(folder string) []row {
	files, err := filepath.Glob(filepath.Join(folder, "*.crt"))
	check(err)
	sort.Strings(files)
	var rows []row
	for _, file := range files {
		certificate, err := os.ReadFile(file)
		check(err)
		key, err := os.ReadFile(strings.TrimSuffix(file, ".crt") + ".key")
		check(err)
		name := strings.TrimSuffix(filepath.Base(file), ".crt")
		rows = append(rows, row{Name: name, Server: "hook.test", Roots: string(certificate), Chain: string(certificate), Key: string(key)})
	}
	return rows
}

// bundles are other spellings of the roots.
func bundles(add func(name, server, roots string, shown *identity, intermediates ...*identity)) {
	shown, other := issue(template(nil), nil), issue(template(nil), nil)
	garbage := "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"
	add("bundle: two roots", "hook.test", other.pem+shown.pem, shown)
	add("bundle: another root", "hook.test", other.pem, shown)
	add("bundle: a malformed one before it", "hook.test", garbage+shown.pem, shown)
	add("bundle: a malformed one after it", "hook.test", shown.pem+garbage, shown)
	add("bundle: text around it", "hook.test", "subject=a\n"+shown.pem+"\nend\n", shown)
	add("bundle: a key before it", "hook.test", shown.keyPEM()+shown.pem, shown)
	add("bundle: line ends of Windows", "hook.test", strings.ReplaceAll(shown.pem, "\n", "\r\n"), shown)
	add("bundle: twice", "hook.test", shown.pem+shown.pem, shown)
	again := issueFor(template(func(of *x509.Certificate) { of.Subject = shown.certificate.Subject }), shown.key, nil)
	add("bundle: an older one of the same key", "hook.test", shown.pem, again)
	plain := issue(template(notAuthority), nil)
	again = issueFor(template(func(of *x509.Certificate) {
		of.Subject, of.IsCA = plain.certificate.Subject, false
	}), plain.key, nil)
	add("bundle: an older one of the same key, no authority", "hook.test", plain.pem, again)
	add("bundle: shown with another", "hook.test", shown.pem, shown, other)
}

// chains are servers with certificates of an authority.
func chains(add func(name, server, roots string, shown *identity, intermediates ...*identity)) {
	leafOf := func(root *identity) *identity { return issue(template(notAuthority), root) }
	chain := func(name string, change func(*x509.Certificate)) {
		root := issue(template(change), nil)
		add("root: "+name, "hook.test", root.pem, leafOf(root))
	}
	chain("an authority", nil)
	chain("no authority", notAuthority)
	chain("without basic constraints", func(of *x509.Certificate) { of.BasicConstraintsValid, of.IsCA = false, false })
	chain("expired", expired)
	chain("key usage: signature", usage(x509.KeyUsageDigitalSignature))
	chain("key usage: certificates", usage(x509.KeyUsageCertSign))
	chain("for clients", extended(x509.ExtKeyUsageClientAuth))
	chain("for servers", extended(x509.ExtKeyUsageServerAuth))
	chain("for any", extended(x509.ExtKeyUsageAny))
	chain("a critical unknown extension", extension(true))
	chain("constraints that permit the name", func(of *x509.Certificate) {
		of.PermittedDNSDomains, of.PermittedDNSDomainsCritical = []string{"test"}, true
	})
	chain("constraints that exclude the name", func(of *x509.Certificate) { of.ExcludedDNSDomains = []string{"hook.test"} })

	root := issue(template(nil), nil)
	leaf := func(name string, change func(*x509.Certificate)) {
		add("leaf: "+name, "hook.test", root.pem, issue(template(change), root))
	}
	leaf("an authority", nil)
	leaf("expired", func(of *x509.Certificate) { notAuthority(of); expired(of) })
	leaf("for clients", func(of *x509.Certificate) { notAuthority(of); extended(x509.ExtKeyUsageClientAuth)(of) })
	leaf("no names", func(of *x509.Certificate) { of.IsCA, of.DNSNames, of.IPAddresses = false, nil, nil })
	alone := leafOf(root)
	add("leaf: trusted itself", "hook.test", alone.pem, alone)
	add("leaf: trusted itself, with its issuer", "hook.test", alone.pem, alone, root)
	add("leaf: of the root and itself trusted", "hook.test", alone.pem+root.pem, alone)

	between := func(name string, change func(*x509.Certificate)) {
		one := issue(template(change), root)
		add("intermediate: "+name, "hook.test", root.pem, leafOf(one), one)
	}
	between("an authority", nil)
	between("no authority", notAuthority)
	between("expired", expired)
	between("for clients", extended(x509.ExtKeyUsageClientAuth))
	one := issue(template(nil), root)
	add("intermediate: missing", "hook.test", root.pem, leafOf(one))
	add("intermediate: trusted alone", "hook.test", one.pem, leafOf(one))
	add("intermediate: shown twice", "hook.test", root.pem, leafOf(one), one, one)
	short := issue(template(func(of *x509.Certificate) { of.MaxPathLenZero = true }), nil)
	one = issue(template(nil), short)
	add("root: a path that is too long", "hook.test", short.pem, leafOf(one), one)
	add("root: a path that is long enough", "hook.test", short.pem, leafOf(short))
}
