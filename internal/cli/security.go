package cli

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Security is how to reach a broker that asks for TLS or a login.
type Security struct {
	TLS         bool
	TLSCA       string // PEM file of the authorities to trust; "" is the system's
	TLSCert     string // PEM file of our own certificate, with TLSKey
	TLSKey      string
	TLSInsecure bool

	Mechanism string // "", "plain", "scram-sha-256" or "scram-sha-512"
	User      string
	Password  string // from the environment only, so that it shows in no process list
}

func securityFromEnv() Security {
	return Security{User: os.Getenv("DAYBOOK_SASL_USER"), Password: os.Getenv("DAYBOOK_SASL_PASSWORD"), Mechanism: os.Getenv("DAYBOOK_SASL_MECHANISM")}
}

func (s *Security) validate() error {
	if (s.TLSCert == "") != (s.TLSKey == "") {
		return Usagef("--tls-cert and --tls-key belong together: give both or neither")
	}
	if _, err := s.mechanism(); err != nil {
		return err
	}
	if s.User != "" && s.Mechanism == "" {
		s.Mechanism = "scram-sha-256"
	}
	return nil
}

func (s *Security) mechanism() (sasl.Mechanism, error) {
	switch s.Mechanism {
	case "":
		return nil, nil
	case "plain":
		return plain.Auth{User: s.User, Pass: s.Password}.AsMechanism(), nil
	case "scram-sha-256":
		return scram.Auth{User: s.User, Pass: s.Password}.AsSha256Mechanism(), nil
	case "scram-sha-512":
		return scram.Auth{User: s.User, Pass: s.Password}.AsSha512Mechanism(), nil
	}
	return nil, Usagef("--sasl-mechanism is %q: it must be plain, scram-sha-256 or scram-sha-512", s.Mechanism)
}

func (s *Security) wantsTLS() bool {
	return s.TLS || s.TLSCA != "" || s.TLSCert != "" || s.TLSInsecure
}

func (s *Security) options() ([]kgo.Opt, error) {
	var opts []kgo.Opt
	m, err := s.mechanism()
	if err != nil {
		return nil, err
	}
	if m != nil {
		opts = append(opts, kgo.SASL(m))
	}
	if !s.wantsTLS() {
		return opts, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: s.TLSInsecure}
	if s.TLSCA != "" {
		pem, err := os.ReadFile(s.TLSCA)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, Usagef("--tls-ca %s holds no PEM certificate", s.TLSCA)
		}
	}
	if s.TLSCert != "" {
		cert, err := tls.LoadX509KeyPair(s.TLSCert, s.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	return append(opts, kgo.DialTLSConfig(cfg)), nil
}
