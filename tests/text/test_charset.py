"""Whatever the labels say: the text comes out right, and the codec is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.text.charset import claimed, decode, label

CHINESE = "这是一个关于城市河流的新闻，我们在这里记录了每天的雨量和水位。"
TRADITIONAL = "這是一個關於城市河流的新聞，我們在這裡記錄了每天的雨量和水位。"
JAPANESE = "これは都市の川についてのニュースです。毎日の雨量を記録しています。"
KOREAN = "이것은 도시의 강에 대한 뉴스입니다. 우리는 매일 강수량을 기록하고 있습니다."
RUSSIAN = "Это новость о городской реке, мы каждый день записываем уровень воды."
FRENCH = "L’été, la rivière déborde à l’île « Saint-Honoré », près du vieux café."


@pytest.mark.parametrize(
    ("text", "encoding", "given_label", "codec"),
    [
        (CHINESE, "gbk", "gb2312", "gb18030"),
        (CHINESE, "gb18030", "GBK", "gb18030"),
        (CHINESE, "gbk", "x-gbk", "gb18030"),
        ("囧rz 镕基", "gbk", "gb2312", "gb18030"),  # beyond GB2312, as in the field
        (TRADITIONAL, "big5", "Big5", "big5hkscs"),
        ("啫喱嘅嘢", "big5hkscs", "big5", "big5hkscs"),
        (JAPANESE, "cp932", "Shift_JIS", "cp932"),
        ("①②～", "cp932", "shift_jis", "cp932"),
        (JAPANESE, "euc_jp", "EUC-JP", "euc_jp"),
        (KOREAN, "cp949", "ks_c_5601-1987", "cp949"),
        ("똠방각하", "cp949", "euc-kr", "cp949"),
        (RUSSIAN, "cp1251", "windows-1251", "cp1251"),
        (RUSSIAN, "koi8_r", "KOI8-R", "koi8_r"),
        (FRENCH, "cp1252", "ISO-8859-1", "cp1252"),  # Windows quotes under the Latin label
        (FRENCH, "utf-8", "utf-8", "utf-8"),
    ],
)
def test_a_label_means_what_is_sent_under_it(text, encoding, given_label, codec):
    body = f'<?xml version="1.0" encoding="{given_label}"?><t>{text}</t>'.encode(encoding)
    decoded, found = decode(body)
    assert (text in decoded, found) == (True, codec)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (CHINESE, "gb18030"),
        (TRADITIONAL, "big5hkscs"),
        (JAPANESE, "cp932"),
        (JAPANESE, "euc_jp"),
        (KOREAN, "cp949"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8_r"),
        (FRENCH, "cp1252"),
    ],
)
@pytest.mark.parametrize("said", ["utf-8", None])
def test_an_encoding_without_a_label_or_called_utf_8_is_found(text, encoding, said):
    body = f"<t>{text}</t>".encode(encoding)
    assert decode(body, f"text/xml; charset={said}" if said else None) == (f"<t>{text}</t>", encoding)


@pytest.mark.parametrize(
    "said", ["iso-8859-1", "windows-1252", "gb2312", "big5", "utf-16", "no-such-label", "us-ascii"]
)
def test_whole_utf_8_is_utf_8_under_any_label(said):
    body = f'<?xml version="1.0" encoding="{said}"?><t>{CHINESE}</t>'.encode()
    assert label(body) == label(body, f"text/xml; charset={said}") == "utf-8"


def test_a_byte_order_mark_beats_every_label():
    assert decode("\ufeff<t>é</t>".encode(), "text/xml; charset=windows-1251") == ("<t>é</t>", "utf-8")
    assert decode("\ufeff<t>é</t>".encode("utf-16-le"), "text/xml; charset=utf-8") == ("<t>é</t>", "utf-16-le")
    assert decode("\ufeff<t>é</t>".encode("utf-16-be")) == ("<t>é</t>", "utf-16-be")
    assert decode("\ufeff<t>é</t>".encode("utf-32-le")) == ("<t>é</t>", "utf-32-le")


def test_utf_16_without_a_mark_is_known_by_its_zeros():
    assert decode("<t>é</t>".encode("utf-16-le")) == ("<t>é</t>", "utf-16-le")
    assert decode("<t>é</t>".encode("utf-16-be")) == ("<t>é</t>", "utf-16-be")


def test_the_http_header_comes_before_the_declaration():
    body = '<?xml version="1.0" encoding="windows-1251"?><t>é è</t>'.encode("cp1252")
    assert decode(body, "application/xml; charset=iso-8859-1")[1] == "cp1252"
    assert decode(body, "application/xml; charset='iso-8859-1'")[1] == "cp1252"


def test_text_xml_without_a_charset_is_not_ascii():
    assert (
        decode(f'<?xml version="1.0" encoding="koi8-r"?><t>{RUSSIAN}</t>'.encode("koi8_r"), "text/xml")[1] == "koi8_r"
    )


def test_a_page_is_labelled_by_its_meta_and_a_feed_is_not():
    page = "<html><head>{}<meta http-equiv='Content-Type' content='text/html; charset=gb2312'></head>短</html>"
    assert decode(page.format(" " * 2000).encode("gbk"))[1] == "gb18030"
    quoting = "<rss><description>&lt;meta charset=gb2312></description><t><meta charset='gb2312'/>é</t></rss>"
    assert decode(quoting.encode("cp1252"))[1] == "cp1252"


def test_a_body_cut_inside_a_character_keeps_its_encoding():
    assert decode("<t>河流河流".encode()[:-1], "text/xml; charset=utf-8") == ("<t>河流河", "utf-8")
    assert decode("<t>河流河流".encode("gbk")[:-1], "text/xml; charset=gbk") == ("<t>河流河", "gb18030")


def test_one_damaged_character_is_damage_and_not_another_encoding():
    body = (CHINESE * 5).encode() + b"\xff" + CHINESE.encode()
    assert decode(body, "text/xml; charset=utf-8") == (CHINESE * 5 + "\ufffd" + CHINESE, "utf-8")


@pytest.mark.parametrize("said", ["utf-7", "rot13", "unicode_escape", "base64", "idna", "zlib"])
def test_codecs_that_are_no_encodings_cannot_be_chosen(said):
    assert decode(b"<t>+ADw-script+AD4-</t>", f"text/xml; charset={said}") == ("<t>+ADw-script+AD4-</t>", "utf-8")
    assert claimed(b"<t/>", f"text/xml; charset={said}") is None


@pytest.mark.parametrize(
    ("body", "content_type", "codec"),
    [
        (b"<t/>", None, None),
        (b"<t/>", "text/xml", None),
        (b"<t/>", "text/xml; charset=UTF-8", "utf-8"),
        (b'<?xml version="1.0" encoding="utf-8"?>', None, "utf-8"),
        (b"<?xml version='1.0' encoding='GB2312'?>", None, "gb18030"),
    ],
)
def test_a_claim_is_what_the_first_label_says(body, content_type, codec):
    assert claimed(body, content_type) == codec


@given(st.binary(max_size=300), st.sampled_from([None, "text/xml; charset=utf-8", "text/html; charset=big5", "x"]))
def test_any_bytes_decode_to_something(body, content_type):
    text, codec = decode(body, content_type)
    assert isinstance(text, str)
    assert codec
