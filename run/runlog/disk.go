package runlog

import "github.com/sottodp/sotto/internal/vfs"

// A Disk is the file system of run directories. The functions of this package that name files are the methods of
// the machine's own.
type Disk struct{ FS vfs.FS }

var machine = Disk{vfs.OS{}}

// Create is [Disk.Create] on the machine's file system.
func Create(dir string) (*Writer, error) { return machine.Create(dir) }

// Continue is [Disk.Continue] on the machine's file system.
func Continue(dir string, redo bool) (*Writer, *Record, error) { return machine.Continue(dir, redo) }

// Read is [Disk.Read] on the machine's file system.
func Read(dir string) (*Record, error) { return machine.Read(dir) }

// ReadInfo is [Disk.ReadInfo] on the machine's file system.
func ReadInfo(dir string) (*Info, error) { return machine.ReadInfo(dir) }

// WriteInfo is [Disk.WriteInfo] on the machine's file system.
func WriteInfo(dir string, i *Info) error { return machine.WriteInfo(dir, i) }

// Record is [Disk.Record] on the machine's file system.
func (i *Info) Record(dir string) (*Record, error) { return machine.Record(i, dir) }

// Hashes is [Disk.Hashes] on the machine's file system.
func Hashes(dir string) (map[string]string, error) { return machine.Hashes(dir) }

// Hash is [Disk.Hash] on the machine's file system.
func Hash(dir, name string) (string, error) { return machine.Hash(dir, name) }

// Seal is [Disk.Seal] on the machine's file system.
func Seal(dir string) (map[string]string, error) { return machine.Seal(dir) }

// CreateJournal is [Disk.CreateJournal] on the machine's file system.
func CreateJournal(path string, head JournalHead) (*Journal, error) {
	return machine.CreateJournal(path, head)
}

// OpenJournal is [Disk.OpenJournal] on the machine's file system.
func OpenJournal(path string, head JournalHead) (*Journal, *JournalReader, error) {
	return machine.OpenJournal(path, head)
}

// ReadJournal is [Disk.ReadJournal] on the machine's file system.
func ReadJournal(path string) (*JournalReader, error) { return machine.ReadJournal(path) }

// JournalRecord is [Disk.JournalRecord] on the machine's file system.
func JournalRecord(path string) (*Record, error) { return machine.JournalRecord(path) }

// ReadSums is [Disk.ReadSums] on the machine's file system.
func ReadSums(path string) (*Sums, error) { return machine.ReadSums(path) }
