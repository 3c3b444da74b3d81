"""What can go wrong: one class for each kind of error that the sotto command names.

    SottoError
    ├── MachineError (RuntimeError)     disk, network, a missing command; exit code 1
    ├── InputError (ValueError)         a mistake in what was given; nothing was changed; exit code 2
    │   ├── DataError                   in the rows
    │   ├── DroppedRowsError            more than 1 % of the rows would be dropped
    │   ├── DeltaError                  δ is 1 over the number of rows or units, or more
    │   └── NotALedgerError             the ledger's file holds no ledger
    └── PrivacyError (RuntimeError)     privacy does not allow it; nothing was released; exit code 3
        ├── BudgetError                 the lifetime budget is not enough
        ├── GuaranteeError              it would end the dataset's guarantee
        ├── ContentProtectedError       a dataset of the ledger protects these rows
        ├── CannotCompareError          a packed table cannot be compared with protected rows
        ├── OverlapError                test rows are training rows
        ├── LedgerWitnessError          the ledger is missing, emptied, older or forked
        ├── StaleTokenError             a copy of the run's directory, or a second resume
        ├── BehindError                 the run went on after this copy of its directory was made
        ├── OtherChargesError           the run directory shows other charged events than the ledger recorded
        └── SettledError                the run has ended
    Interrupted (KeyboardInterrupt)     stopped by the user; can be resumed; exit code 130
"""


class SottoError(Exception):
    """The base of all errors."""


class MachineError(SottoError, RuntimeError):
    """The machine failed: disk, network, a missing command."""


class InputError(SottoError, ValueError):
    """What was given has a mistake; nothing was changed."""


class DataError(InputError):
    """The rows have a mistake."""


class DroppedRowsError(InputError):
    """More than 1 % of the rows would be dropped."""


class DeltaError(InputError):
    """δ is 1 over the declared number of rows or units, or more."""


class NotALedgerError(InputError):
    """The ledger's file holds no ledger."""


class PrivacyError(SottoError, RuntimeError):
    """Privacy does not allow it; nothing was released."""


class BudgetError(PrivacyError):
    """The dataset's lifetime budget does not cover the run."""


class GuaranteeError(PrivacyError):
    """The access would end the dataset's guarantee."""


class ContentProtectedError(PrivacyError):
    """A dataset of the ledger protects these rows, under this name or another one."""


class CannotCompareError(PrivacyError):
    """A packed table cannot be compared with protected rows, since another machine made its row hashes."""


class OverlapError(PrivacyError):
    """Test rows are training rows."""


class LedgerWitnessError(PrivacyError):
    """The ledger is missing, emptied, older than it was, or forked."""


class StaleTokenError(PrivacyError):
    """The run directory is a copy, or was resumed before: its token was exchanged."""


class BehindError(PrivacyError):
    """The run went on after this copy of its directory was made."""


class OtherChargesError(PrivacyError):
    """The run directory shows other charged events than the ledger recorded."""


class SettledError(PrivacyError):
    """The run has ended; it cannot be resumed."""


class Interrupted(KeyboardInterrupt):
    """Stopped by the user; the run can be resumed. As every KeyboardInterrupt it is no Exception."""


class PrivacyWarning(UserWarning):
    """What the command says about privacy and goes on. It is for the owner of the rows."""


# The kinds of errors by the names that the command gives them (failures in cli/exit.go).
KINDS: dict[str, type[SottoError] | type[Interrupted]] = {
    "interrupted": Interrupted,
    "content-protected": ContentProtectedError,
    "cannot-compare": CannotCompareError,
    "test-overlaps-training": OverlapError,
    "ledger-witness": LedgerWitnessError,
    "would-end-guarantee": GuaranteeError,
    "stale-token": StaleTokenError,
    "behind": BehindError,
    "other-charges": OtherChargesError,
    "settled": SettledError,
    "budget-exhausted": BudgetError,
    "dropped-rows": DroppedRowsError,
    "delta-too-large": DeltaError,
    "not-a-ledger": NotALedgerError,
    "bad-data": DataError,
    "bad-input": InputError,
    "failed": MachineError,
}

# The base class of each exit code: for a kind that a newer command names.
CODES: dict[int, type[SottoError] | type[Interrupted]] = {1: MachineError, 2: InputError, 3: PrivacyError, 130: Interrupted}
