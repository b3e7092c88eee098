"""The results folder of a fault campaign while it is run: finished runs are kept and not run again."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path
from types import TracebackType

from nbv_planner.errors import ResultsError
from nbv_planner.evaluation.records import versions
from nbv_planner.experiments.folder_lock import FolderLock, holds_results
from nbv_planner.experiments.sweep import first_difference
from nbv_planner.faults.campaign import Campaign, Run
from nbv_planner.faults.outcome import Outcome
from nbv_planner.faults.tables import account, markdown
from nbv_planner.results import write_whole

FORMAT, FORMAT_VERSION = "nbv_planner faults", 1
MANIFEST_FILE, CAMPAIGN_FILE = "manifest.json", "campaign.yaml"
TABLE_FILE, ACCOUNT_FILE = "faults.md", "faults.json"



class FaultFolder:
    """Context manager for a results folder that this process alone writes into.

    Attributes:
        path: the folder.
    """

    def __init__(self, path: str | Path, campaign: Campaign, *, resume: bool = False) -> None:
        """Refuse at once what could not be written later.

        Args:
            path: the folder; made if it is not there.
            campaign: what is run.
            resume: whether to go on with a folder in which this campaign was begun.

        Raises:
            ResultsError: the folder holds something else or another campaign, or something and `resume` is not set.
        """
        self.path, self._campaign, self._resume = Path(path), campaign, resume
        self._stack = contextlib.ExitStack()
        self._check()

    def _check(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise ResultsError(f"{self.path} is not a folder; choose another results folder")
        if not self.path.exists() or not holds_results(self.path, CAMPAIGN_FILE):
            return
        if not self._resume:
            raise ResultsError(f"{self.path} is not empty; go on with it by --resume or choose another folder")
        difference = first_difference(self._manifest()["campaign"], self._campaign.as_dict())
        if difference:
            raise ResultsError(f"{self.path} holds another campaign: {difference}; choose another folder")

    def _manifest(self) -> dict[str, dict[str, object]]:
        try:
            content = json.loads((self.path / MANIFEST_FILE).read_text(encoding="utf-8"))
            if (content["format"], content["format_version"]) != (FORMAT, FORMAT_VERSION):
                raise ValueError(f"format {content['format']!r}, version {content['format_version']}")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ResultsError(f"{self.path} is no results folder of a fault campaign ({error})") from error
        return dict(content)

    def __enter__(self) -> FaultFolder:
        """Take hold of the folder and describe the campaign.

        Raises:
            ResultsError: another process writes into the folder, or it cannot be written.
        """
        with contextlib.ExitStack() as stack:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                stack.enter_context(FolderLock(self.path))
                self._check()
                self._describe()
            except ResultsError:
                raise
            except OSError as error:
                raise ResultsError(f"cannot write to {self.path}: {error.strerror}") from error
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write the account of what has been run, and let go of the folder."""
        try:
            self.write_account()
        finally:
            self._stack.close()

    def _describe(self) -> None:
        if (self.path / MANIFEST_FILE).exists():
            return
        write_whole(self.path / CAMPAIGN_FILE, self._campaign.text)
        manifest = {
            "format": FORMAT, "format_version": FORMAT_VERSION, "campaign": self._campaign.as_dict(),
            "versions": versions(),
        }
        write_whole(self.path / MANIFEST_FILE, json.dumps(manifest, indent=1) + "\n")

    def fresh_folder(self, run: Run) -> Path:
        """Empty folder for the logs and files of a run; what a run that was cut off has left there is removed."""
        folder = self.path / "runs" / run.slug
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def keep(self, run: Run, outcome: Outcome) -> None:
        """Write what became of a run."""
        text = json.dumps(outcome.to_json(), indent=1, allow_nan=False)
        self._place(run).parent.mkdir(exist_ok=True)
        write_whole(self._place(run), text + "\n")

    def outcome_of(self, run: Run) -> Outcome | None:
        """What became of a run, None if it has not been finished."""
        try:
            outcome = Outcome.from_json(json.loads(self._place(run).read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return outcome if outcome.belongs_to(run) else None

    def _place(self, run: Run) -> Path:
        return self.path / "runs" / f"{run.slug}.json"

    def outcomes(self) -> list[Outcome]:
        """What became of the runs so far, in the order of the campaign."""
        found = (self.outcome_of(run) for run in self._campaign.runs())
        return [outcome for outcome in found if outcome is not None]

    def write_account(self) -> None:
        """Write the table and the account of the runs so far."""
        content = account(self._campaign, self.outcomes())
        write_whole(self.path / ACCOUNT_FILE, json.dumps({**content, "versions": versions()}, indent=1) + "\n")
        write_whole(self.path / TABLE_FILE, markdown(content))
