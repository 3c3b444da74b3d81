package disclosure

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"

	"github.com/sottodp/sotto/internal/readfile"
)

// SignatureSuffix ends the name of a signature file beside the signed one, as with ssh-keygen -Y sign.
const SignatureSuffix = ".sig"

// Signatures have the format of OpenSSH (PROTOCOL.sshsig), with the namespace that it uses for files.
const (
	sshMagic     = "SSHSIG"
	sshNamespace = "file"
	sshArmor     = "SSH SIGNATURE"
)

// What is signed, after sshMagic.
type sshSigned struct{ Namespace, Reserved, Hash, Sum string }

// A signature, after sshMagic.
type sshSignature struct {
	Version                                   uint32
	Key, Namespace, Reserved, Hash, Signature string
}

func signedText(text []byte) []byte {
	sum := sha256.Sum256(text)
	return append([]byte(sshMagic),
		ssh.Marshal(sshSigned{Namespace: sshNamespace, Hash: "sha256", Sum: string(sum[:])})...)
}

// ReadKey reads an Ed25519 private key in the format of OpenSSH, without a passphrase.
func ReadKey(path string) (ssh.Signer, error) {
	b, err := readfile.All(path, readfile.Short)
	if err != nil {
		return nil, inputError("--sign: %w", err)
	}
	key, err := ssh.ParsePrivateKey(b)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, inputError("--sign %s: the key has a passphrase; leave --sign out and sign with `ssh-keygen -Y sign -n file -f %s FILE`", path, path)
	case err != nil:
		return nil, inputError("--sign %s: found no private key of OpenSSH; give an Ed25519 key, as `ssh-keygen -t ed25519` makes it", path)
	case key.PublicKey().Type() != ssh.KeyAlgoED25519:
		return nil, inputError("--sign %s: found a key of type %s; give one of type %s", path, key.PublicKey().Type(),
			ssh.KeyAlgoED25519)
	}
	return key, nil
}

// Sign returns a detached signature of a file's text, which `ssh-keygen -Y verify -n file` accepts.
func Sign(key ssh.Signer, text []byte) ([]byte, error) {
	s, err := key.Sign(nil, signedText(text)) // Ed25519 needs no random numbers
	if err != nil {
		return nil, err
	}
	blob := append([]byte(sshMagic),
		ssh.Marshal(sshSignature{Version: 1, Key: string(key.PublicKey().Marshal()), Namespace: sshNamespace, Hash: "sha256",
			Signature: string(ssh.Marshal(s))})...)
	var b bytes.Buffer
	line := base64.StdEncoding.EncodeToString(blob)
	fmt.Fprintf(&b, "-----BEGIN %s-----\n", sshArmor)
	for len(line) > 0 {
		n := min(len(line), 70)
		fmt.Fprintln(&b, line[:n])
		line = line[n:]
	}
	fmt.Fprintf(&b, "-----END %s-----\n", sshArmor)
	return b.Bytes(), nil
}

// CheckSignature returns the key that signed the text.
func CheckSignature(armored, text []byte) (ssh.PublicKey, error) {
	block, rest := pem.Decode(armored)
	if block == nil || block.Type != sshArmor || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("found no signature of `ssh-keygen -Y sign`")
	}
	blob, ok := bytes.CutPrefix(block.Bytes, []byte(sshMagic))
	var s sshSignature
	var raw ssh.Signature
	if !ok || ssh.Unmarshal(blob, &s) != nil || ssh.Unmarshal([]byte(s.Signature), &raw) != nil {
		return nil, errors.New("the signature is damaged")
	}
	key, err := ssh.ParsePublicKey([]byte(s.Key))
	if err != nil {
		return nil, fmt.Errorf("the signature's key: %w", err)
	}
	switch {
	case s.Version != 1 || s.Reserved != "":
		return nil, errors.New("the signature is of another version")
	case s.Namespace != sshNamespace:
		return nil, fmt.Errorf("the signature is for %q; expected %q", s.Namespace, sshNamespace)
	case key.Type() != ssh.KeyAlgoED25519:
		return nil, fmt.Errorf("the key is of type %s; expected %s", key.Type(), ssh.KeyAlgoED25519)
	}
	signed := sshSigned{Namespace: s.Namespace, Hash: s.Hash}
	switch s.Hash {
	case "sha256":
		sum := sha256.Sum256(text)
		signed.Sum = string(sum[:])
	case "sha512": // what ssh-keygen signs
		sum := sha512.Sum512(text)
		signed.Sum = string(sum[:])
	default:
		return nil, fmt.Errorf("the signature hashes by %q; expected sha256 or sha512", s.Hash)
	}
	if err := key.Verify(append([]byte(sshMagic), ssh.Marshal(signed)...), &raw); err != nil {
		return nil, errors.New("the signature is for another text")
	}
	return key, nil
}

// ReadSigner reads a public key in the format of OpenSSH, a line of a .pub file.
func ReadSigner(path string) (ssh.PublicKey, error) {
	b, err := readfile.All(path, readfile.Short)
	if err != nil {
		return nil, inputError("--signer: %w", err)
	}
	key, _, _, rest, err := ssh.ParseAuthorizedKey(b)
	if err != nil || len(bytes.TrimSpace(rest)) > 0 {
		return nil, inputError("--signer %s: found no public key of OpenSSH; give one line, as in a file .pub", path)
	}
	return key, nil
}
