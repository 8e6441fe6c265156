"""The report: stored results in, one page (HTML), the same as Markdown, figures and tables out."""

from gradflow.present.report.build import build_report
from gradflow.present.report.files import report_files
from gradflow.present.report.model import Report
from gradflow.present.report.summary import report_outputs, report_result

__all__ = ["Report", "build_report", "report_files", "report_outputs", "report_result"]
