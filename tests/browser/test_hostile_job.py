# SPDX-License-Identifier: Apache-2.0
"""A job whose name, log, metrics and messages are written to attack whoever looks."""

from dtjob.ui.server import serving
from tests.unit.operator.client.verbs.jobs import RUNNING, job
from tests.unit.operator.ui.one_job import OneJob

HTML = "<img src=x onerror=\"window.attacked=1;alert('x')\"><script>window.attacked=1</script>"


class Attacker(OneJob):
    """The same text everywhere."""

    def __init__(self) -> None:
        super().__init__()
        attack = {"type": HTML, "status": HTML, "reason": HTML, "message": HTML, "lastTransitionTime": HTML}
        incident = {"time": HTML, "task": HTML, "reason": HTML, "message": HTML, "fromStep": HTML, "secondsLost": HTML}
        status = {**RUNNING, "phase": HTML, "reason": HTML, "message": HTML, "ready": HTML}
        made = job(**{**status, "conditions": [attack], "incidents": [incident]})
        made["metadata"]["name"] = HTML
        self.hub.take([("DELETED", job()), ("ADDED", made)])
        self.title = self.why = self.note = self.hub.trouble = HTML

    def log(self) -> list[str]:
        return [HTML]

    def curves(self) -> list[dict[str, object]]:
        return [{"name": HTML, "steps": [1, 2], "values": [1.0, 2.0]}]


def test_texts_of_a_job_are_never_html(page) -> None:
    with serving(Attacker()) as address:
        page.goto(address)
        page.get_by_role("link", name=HTML).wait_for()
        assert page.locator("main img, main script").count() == 0
        page.get_by_role("link", name=HTML).click()
        page.get_by_role("log").get_by_text(HTML).wait_for()
        page.get_by_role("img", name=HTML).locator("canvas").wait_for()
        page.get_by_text("Manifest and status").click()
        page.locator("details pre").get_by_text("onerror").wait_for()
        assert page.locator("main img, main script").count() == 0
        assert page.evaluate("window.attacked") is None


def test_a_script_that_gets_into_the_page_does_not_run(chromium) -> None:
    """The policy is the second wall: a mistake in a file of the page would not be enough."""
    page = chromium.new_page()
    with serving(OneJob()) as address:
        page.goto(address)
        refused = page.evaluate(
            "() => { try { document.body.innerHTML = '<img src=x onerror=\"window.attacked=1\">'; return '' }"
            " catch (error) { return error.name } }"
        )
        page.evaluate("document.body.append(Object.assign(document.createElement('div'), {onclick: null}))")
        assert refused == "TypeError"
        assert page.evaluate("window.attacked") is None
    page.close()
