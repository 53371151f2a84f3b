"""What editors see of `cudock lsp`: a real client opens a Dockerfile, reads diagnostics and pages, and applies a fix.

Run by tests/it/lsp.rs, which sets CUDOCK to the program.
"""
import os

import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

# Columns are UTF-16 units: the last character before the image takes two.
UNTAGGED = "FROM a:1 AS é𝄞\nFROM --platform=é𝄞 a/b\n"
KEEPS_RECOMMENDED = "FROM ubuntu:22.04\n\n# é𝄞\nRUN apt-get update && apt-get install -y nvidia-cuda-toolkit\n"


@pytest_lsp.fixture(config=ClientServerConfig(server_command=[os.environ["CUDOCK"], "lsp"]))
async def client(lsp_client: LanguageClient):
    capabilities = client_capabilities("neovim")
    options = {"for": "T4", "driver": "535"}
    result = await lsp_client.initialize_session(
        types.InitializeParams(capabilities=capabilities, initialization_options=options)
    )
    assert result.server_info.name == "cudock"
    yield
    await lsp_client.shutdown_session()


async def published(client: LanguageClient, version: int, code: str) -> list[types.Diagnostic]:
    """The diagnostics of one code that the server publishes next."""
    params = await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    assert params.version == version
    return [one for one in params.diagnostics if one.code == code]


async def opened(client: LanguageClient, uri: str, text: str, code: str) -> list[types.Diagnostic]:
    document = types.TextDocumentItem(uri=uri, language_id="dockerfile", version=1, text=text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=document))
    return await published(client, 1, code)


async def changed(client: LanguageClient, uri: str, version: int, change, code: str) -> list[types.Diagnostic]:
    document = types.VersionedTextDocumentIdentifier(uri=uri, version=version)
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(text_document=document, content_changes=[change])
    )
    return await published(client, version, code)


async def actions(client: LanguageClient, uri: str, range_: types.Range, only: list[str] | None):
    return await client.text_document_code_action_async(
        types.CodeActionParams(
            text_document=types.TextDocumentIdentifier(uri=uri),
            range=range_,
            context=types.CodeActionContext(diagnostics=[], only=only),
        )
    )


def applied(text: str, action: types.CodeAction) -> str:
    """The text after an action; the edits must be for the version that is open."""
    [change] = action.edit.document_changes
    assert change.text_document.version == 1
    lines = text.split("\n")

    def offset(position: types.Position) -> int:
        before = sum(len(line) + 1 for line in lines[: position.line])
        return before + len(lines[position.line].encode("utf-16-le")[: 2 * position.character].decode("utf-16-le"))

    for edit in sorted(change.edits, key=lambda edit: offset(edit.range.start), reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text


async def test_diagnostics_follow_changes_of_the_text(client: LanguageClient, tmp_path):
    uri = (tmp_path / "my Dockerfile").as_uri()
    [diagnostic] = await opened(client, uri, UNTAGGED, "CD0702")
    assert diagnostic.range == types.Range(types.Position(1, 20), types.Position(1, 23))
    assert diagnostic.severity == types.DiagnosticSeverity.Warning and diagnostic.source == "cudock"
    assert "a/b" in diagnostic.message and "fix:" in diagnostic.message

    at = types.Position(1, 23)
    tag = types.TextDocumentContentChangePartial(range=types.Range(at, at), text=":1")
    assert await changed(client, uri, 2, tag, "CD0702") == []
    whole = types.TextDocumentContentChangeWholeDocument(text="FROM a:1\nFETCH b\n")
    [diagnostic] = await changed(client, uri, 3, whole, "CD0700")
    assert diagnostic.range.start.line == 1 and diagnostic.severity == types.DiagnosticSeverity.Error

    document = types.TextDocumentIdentifier(uri=uri)
    client.text_document_did_close(types.DidCloseTextDocumentParams(text_document=document))
    params = await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    assert not params.diagnostics


async def test_settings_come_from_the_project(client: LanguageClient, tmp_path):
    (tmp_path / "cudock.toml").write_text("[lint]\ndisable = ['missing-tag']\n")
    uri = (tmp_path / "Dockerfile").as_uri()
    assert await opened(client, uri, UNTAGGED, "CD0702") == []
    (tmp_path / "cudock.toml").write_text("[lint.severity]\nmissing-tag = 'note'\n")
    document = types.TextDocumentIdentifier(uri=uri)
    client.text_document_did_save(types.DidSaveTextDocumentParams(text_document=document))
    [diagnostic] = await published(client, 1, "CD0702")
    assert diagnostic.severity == types.DiagnosticSeverity.Information
    (tmp_path / "cudock.toml").write_text("[lint]\ndisable = ['missing-tags']\n")
    client.text_document_did_save(types.DidSaveTextDocumentParams(text_document=document))
    message = await client.wait_for_notification(types.WINDOW_SHOW_MESSAGE)
    assert "cudock.toml:2:12: unknown rule `missing-tags`" in message.message


async def test_hover_shows_the_page(client: LanguageClient, tmp_path):
    uri = (tmp_path / "Dockerfile").as_uri()
    await opened(client, uri, UNTAGGED + "# cudock: ignore=CD0613\nRUN a\n", "CD0702")

    async def hover(line: int, character: int):
        document = types.TextDocumentIdentifier(uri=uri)
        return await client.text_document_hover_async(
            types.HoverParams(text_document=document, position=types.Position(line, character))
        )

    page = await hover(1, 21)
    assert page.contents.value.startswith("**CD0702: A base image without a tag**")
    assert (await hover(2, 20)).contents.value.startswith("**CD0613: ")
    assert await hover(3, 0) is None


async def test_fixes_are_applied(client: LanguageClient, tmp_path):
    uri = (tmp_path / "Dockerfile").as_uri()
    [diagnostic] = await opened(client, uri, KEEPS_RECOMMENDED, "CD0775")
    fixes = await actions(client, uri, diagnostic.range, [types.CodeActionKind.QuickFix])
    [fix] = [fix for fix in fixes if fix.diagnostics[0].code == "CD0775"]
    assert fix.is_preferred
    fixed = applied(KEEPS_RECOMMENDED, fix)
    assert fixed == KEEPS_RECOMMENDED.replace("install -y", "install --no-install-recommends -y")

    [everything] = await actions(client, uri, diagnostic.range, ["source.fixAll"])
    assert everything.kind == "source.fixAll.cudock"
    fixed = applied(KEEPS_RECOMMENDED, everything)
    assert "--no-install-recommends" in fixed and fixed.startswith("FROM ubuntu:22.04\n\n# é𝄞\nRUN ")
    assert not await actions(client, uri, diagnostic.range, ["refactor"])
    kinds = {action.kind for action in await actions(client, uri, diagnostic.range, None)}
    assert kinds == {"quickfix", "source.fixAll.cudock"}

    whole = types.TextDocumentContentChangeWholeDocument(text=fixed)
    assert await changed(client, uri, 2, whole, "CD0775") == []
