package simdisk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/sottodp/sotto/internal/vfs"
)

// A Mount is a VFS of SQLite on a simulated disk. It does what SQLite's own VFS for Unix does: the same calls in the
// same order, interrupted reads and writes repeated, a synced directory after the first sync of a new journal and, if
// SQLite asks, after the removal of a file. Only shared memory, which rollback journals do not need, is missing.
type Mount struct {
	Name string // for the data source name: vfs=NAME
	Disk *Disk  // may be exchanged while no database is open

	vfs  sqlite3.Tsqlite3_vfs
	name []byte
	rand uint64
}

// handle is an open file of SQLite.
type handle struct {
	m       *Mount
	f       *file
	path    string
	remove  bool // when it is closed
	syncDir bool // after its next sync
	level   int
}

// sqliteFile is the C structure that SQLite passes around.
type sqliteFile struct {
	base sqlite3.Tsqlite3_file
	id   uintptr
}

var mounts struct {
	sync.Mutex
	last    uintptr
	mounts  map[uintptr]*Mount
	handles map[uintptr]*handle
}

var methods sqlite3.Tsqlite3_io_methods

// of is the address of a function as SQLite's translated code calls it.
func of[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// at is the memory at an address that SQLite passes.
func at[T any](p uintptr) *T { return (*T)(*(*unsafe.Pointer)(unsafe.Pointer(&p))) }

func bytesAt(p uintptr, n int32) []byte { return unsafe.Slice(at[byte](p), n) }

// NewMount registers a VFS with SQLite, which keeps it to the end of the process.
func NewMount() *Mount {
	mounts.Lock()
	defer mounts.Unlock()
	if mounts.mounts == nil {
		mounts.mounts, mounts.handles = map[uintptr]*Mount{}, map[uintptr]*handle{}
		methods = sqlite3.Tsqlite3_io_methods{
			FiVersion: 1, FxClose: of(xClose), FxRead: of(xRead), FxWrite: of(xWrite), FxTruncate: of(xTruncate),
			FxSync: of(xSync), FxFileSize: of(xFileSize),
			FxLock: of(xLock), FxUnlock: of(xUnlock), FxCheckReservedLock: of(xCheckReservedLock),
			FxFileControl: of(xFileControl),
			FxSectorSize:  of(xSectorSize), FxDeviceCharacteristics: of(xDeviceCharacteristics),
		}
	}
	mounts.last++
	m := &Mount{Name: fmt.Sprintf("simdisk-%d", mounts.last)}
	m.name = append([]byte(m.Name), 0)
	m.vfs = sqlite3.Tsqlite3_vfs{
		FiVersion: 2, FszOsFile: int32(unsafe.Sizeof(sqliteFile{})), FmxPathname: 1024,
		FzName: uintptr(unsafe.Pointer(&m.name[0])), FpAppData: mounts.last,
		FxOpen: of(xOpen), FxDelete: of(xDelete), FxAccess: of(xAccess), FxFullPathname: of(xFullPathname),
		FxRandomness: of(xRandomness), FxSleep: of(xSleep),
		FxCurrentTime: of(xCurrentTime), FxGetLastError: of(xGetLastError), FxCurrentTimeInt64: of(xCurrentTimeInt64),
	}
	mounts.mounts[mounts.last] = m
	tls := libc.NewTLS()
	defer tls.Close()
	if rc := sqlite3.Xsqlite3_vfs_register(tls, uintptr(unsafe.Pointer(&m.vfs)), 0); rc != sqlite3.SQLITE_OK {
		panic(fmt.Sprintf("simdisk: SQLite registers no VFS: %d", rc))
	}
	return m
}

func mountOf(pVfs uintptr) *Mount {
	mounts.Lock()
	defer mounts.Unlock()
	return mounts.mounts[at[sqlite3.Tsqlite3_vfs](pVfs).FpAppData]
}

func handleOf(pFile uintptr) *handle {
	mounts.Lock()
	defer mounts.Unlock()
	return mounts.handles[at[sqliteFile](pFile).id]
}

// Level of a lock: none, shared, reserved, pending, exclusive.
const (
	shared    = sqlite3.SQLITE_LOCK_SHARED
	reserved  = sqlite3.SQLITE_LOCK_RESERVED
	exclusive = sqlite3.SQLITE_LOCK_EXCLUSIVE
)

func xOpen(tls *libc.TLS, pVfs, zName, pFile uintptr, flags int32, pOutFlags uintptr) int32 {
	m := mountOf(pVfs)
	*at[sqliteFile](pFile) = sqliteFile{}
	h := &handle{m: m}
	var f vfs.File
	var err error
	if zName == 0 {
		f, err = m.Disk.CreateTemp("/", "sqlite-*")
	} else {
		h.path = libc.GoString(zName)
		mode := os.O_RDWR
		if flags&sqlite3.SQLITE_OPEN_CREATE != 0 {
			mode |= os.O_CREATE
		}
		if flags&sqlite3.SQLITE_OPEN_EXCLUSIVE != 0 {
			mode |= os.O_EXCL
		}
		f, err = again2(func() (vfs.File, error) { return m.Disk.OpenFile(h.path, mode, 0o600) })
	}
	if err != nil {
		return sqlite3.SQLITE_CANTOPEN
	}
	h.f = f.(*file)
	h.remove = flags&sqlite3.SQLITE_OPEN_DELETEONCLOSE != 0
	h.syncDir = flags&sqlite3.SQLITE_OPEN_CREATE != 0 &&
		flags&(sqlite3.SQLITE_OPEN_MAIN_JOURNAL|sqlite3.SQLITE_OPEN_SUPER_JOURNAL|sqlite3.SQLITE_OPEN_WAL) != 0
	mounts.Lock()
	mounts.last++
	at[sqliteFile](pFile).id = mounts.last
	mounts.handles[mounts.last] = h
	mounts.Unlock()
	at[sqliteFile](pFile).base.FpMethods = uintptr(unsafe.Pointer(&methods))
	if pOutFlags != 0 {
		*at[int32](pOutFlags) = flags
	}
	return sqlite3.SQLITE_OK
}

// again2 repeats an interrupted call, as SQLite does.
func again2[T any](do func() (T, error)) (v T, err error) {
	for {
		if v, err = do(); !errors.Is(err, syscall.EINTR) {
			return v, err
		}
	}
}

func again(do func() error) error {
	_, err := again2(func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func xDelete(tls *libc.TLS, pVfs, zName uintptr, syncDir int32) int32 {
	d, path := mountOf(pVfs).Disk, libc.GoString(zName)
	switch err := d.Remove(path); {
	case errors.Is(err, os.ErrNotExist):
		return sqlite3.SQLITE_IOERR_DELETE_NOENT
	case err != nil:
		return sqlite3.SQLITE_IOERR_DELETE
	case syncDir&1 != 0 && openSyncDir(d, filepath.Dir(path)) != nil:
		return sqlite3.SQLITE_IOERR_DIR_FSYNC
	}
	return sqlite3.SQLITE_OK
}

// openSyncDir syncs a directory as SQLite does: if it cannot be opened, that is no error.
func openSyncDir(d *Disk, dir string) error {
	if again(func() error { return d.do(0, Other, "opendir", dir, func(Fault) error { return nil }) }) != nil {
		return nil
	}
	return d.SyncDir(dir)
}

func xAccess(tls *libc.TLS, pVfs, zName uintptr, flags int32, pResOut uintptr) int32 {
	st, err := mountOf(pVfs).Disk.Stat(libc.GoString(zName))
	there := err == nil && (flags != sqlite3.SQLITE_ACCESS_EXISTS || st.Size() > 0)
	*at[int32](pResOut) = 0
	if there {
		*at[int32](pResOut) = 1
	}
	return sqlite3.SQLITE_OK
}

func xFullPathname(tls *libc.TLS, pVfs, zName uintptr, n int32, zOut uintptr) int32 {
	path := libc.GoString(zName)
	if len(path) >= int(n) {
		return sqlite3.SQLITE_CANTOPEN
	}
	copy(bytesAt(zOut, n), path+"\x00")
	return sqlite3.SQLITE_OK
}

func xRandomness(tls *libc.TLS, pVfs uintptr, n int32, zOut uintptr) int32 {
	m := mountOf(pVfs)
	for i := range bytesAt(zOut, n) {
		m.rand = m.rand*6364136223846793005 + 1442695040888963407
		bytesAt(zOut, n)[i] = byte(m.rand >> 56)
	}
	return n
}

func xSleep(tls *libc.TLS, pVfs uintptr, micros int32) int32 {
	time.Sleep(time.Duration(micros) * time.Microsecond)
	return micros
}

func xGetLastError(tls *libc.TLS, pVfs uintptr, n int32, zOut uintptr) int32 { return 0 }

const julian = 210866760000000 // milliseconds from the Julian epoch to that of Unix

func xCurrentTimeInt64(tls *libc.TLS, pVfs, out uintptr) int32 {
	*at[int64](out) = julian + time.Now().UnixMilli()
	return sqlite3.SQLITE_OK
}

func xCurrentTime(tls *libc.TLS, pVfs, out uintptr) int32 {
	*at[float64](out) = float64(julian+time.Now().UnixMilli()) / 86400e3
	return sqlite3.SQLITE_OK
}

func xClose(tls *libc.TLS, pFile uintptr) int32 {
	h := handleOf(pFile)
	h.unlock(0)
	mounts.Lock()
	delete(mounts.handles, at[sqliteFile](pFile).id)
	mounts.Unlock()
	h.f.Close()
	if h.remove {
		h.m.Disk.Remove(h.path)
	}
	return sqlite3.SQLITE_OK
}

func xRead(tls *libc.TLS, pFile, buf uintptr, n int32, off int64) int32 {
	b, h := bytesAt(buf, n), handleOf(pFile)
	got, err := again2(func() (int, error) { return h.f.ReadAt(b, off) })
	switch {
	case err == nil:
		return sqlite3.SQLITE_OK
	case err != io.EOF:
		return sqlite3.SQLITE_IOERR_READ
	}
	clear(b[got:])
	return sqlite3.SQLITE_IOERR_SHORT_READ
}

func xWrite(tls *libc.TLS, pFile, buf uintptr, n int32, off int64) int32 {
	h := handleOf(pFile)
	_, err := again2(func() (int, error) { return h.f.WriteAt(bytesAt(buf, n), off) })
	return wrote(err, sqlite3.SQLITE_IOERR_WRITE)
}

func wrote(err error, code int32) int32 {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return sqlite3.SQLITE_FULL
	case err != nil:
		return code
	}
	return sqlite3.SQLITE_OK
}

func xTruncate(tls *libc.TLS, pFile uintptr, size int64) int32 {
	h := handleOf(pFile)
	if again(func() error { return h.f.Truncate(size) }) != nil {
		return sqlite3.SQLITE_IOERR_TRUNCATE
	}
	return sqlite3.SQLITE_OK
}

func xSync(tls *libc.TLS, pFile uintptr, flags int32) int32 {
	h := handleOf(pFile)
	if h.f.Sync() != nil {
		return sqlite3.SQLITE_IOERR_FSYNC
	}
	if h.syncDir {
		h.syncDir = false
		openSyncDir(h.m.Disk, filepath.Dir(h.path)) // SQLite ignores its errors
	}
	return sqlite3.SQLITE_OK
}

func xFileSize(tls *libc.TLS, pFile, out uintptr) int32 {
	st, err := handleOf(pFile).f.Stat()
	if err != nil {
		return sqlite3.SQLITE_IOERR_FSTAT
	}
	*at[int64](out) = st.Size()
	return sqlite3.SQLITE_OK
}

func xLock(tls *libc.TLS, pFile uintptr, level int32) int32 {
	h := handleOf(pFile)
	rc := int32(sqlite3.SQLITE_OK)
	if h.f.do(Other, "lock", func(Fault) error {
		if !h.lock(int(level)) {
			rc = sqlite3.SQLITE_BUSY
		}
		return nil
	}) != nil {
		return sqlite3.SQLITE_IOERR_LOCK
	}
	return rc
}

// lock raises the level, unless others are in the way. The disk is locked.
func (h *handle) lock(level int) bool {
	if level <= h.level {
		return true
	}
	for other, has := range h.f.n.level {
		if other != h && (has > reserved || has == reserved && level >= reserved || level == exclusive && has >= shared) {
			return false
		}
	}
	if h.f.n.level == nil {
		h.f.n.level = map[*handle]int{}
	}
	h.level, h.f.n.level[h] = level, level
	return true
}

func (h *handle) unlock(level int) {
	h.f.d.mu.Lock()
	defer h.f.d.mu.Unlock()
	if level >= h.level {
		return
	}
	h.level = level
	if level == 0 {
		delete(h.f.n.level, h)
	} else if h.f.n.level != nil {
		h.f.n.level[h] = level
	}
}

func xUnlock(tls *libc.TLS, pFile uintptr, level int32) int32 {
	handleOf(pFile).unlock(int(level))
	return sqlite3.SQLITE_OK
}

func xCheckReservedLock(tls *libc.TLS, pFile, out uintptr) int32 {
	h := handleOf(pFile)
	h.f.d.mu.Lock()
	defer h.f.d.mu.Unlock()
	*at[int32](out) = 0
	for _, has := range h.f.n.level {
		if has >= reserved {
			*at[int32](out) = 1
		}
	}
	return sqlite3.SQLITE_OK
}

func xFileControl(tls *libc.TLS, pFile uintptr, op int32, arg uintptr) int32 {
	h := handleOf(pFile)
	switch op {
	case sqlite3.SQLITE_FCNTL_LOCKSTATE:
		*at[int32](arg) = int32(h.level)
	case sqlite3.SQLITE_FCNTL_HAS_MOVED:
		st, err := h.m.Disk.Stat(h.path)
		*at[int32](arg) = 0
		if err != nil || st.(info).n != h.f.n {
			*at[int32](arg) = 1
		}
	default:
		return sqlite3.SQLITE_NOTFOUND
	}
	return sqlite3.SQLITE_OK
}

func xSectorSize(tls *libc.TLS, pFile uintptr) int32 { return 4096 }

func xDeviceCharacteristics(tls *libc.TLS, pFile uintptr) int32 {
	return sqlite3.SQLITE_IOCAP_POWERSAFE_OVERWRITE
}
