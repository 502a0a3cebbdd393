"""The HTML of boards and threads."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from catchment.playground.sites.nga import payloads
from catchment.playground.sites.nga.texts import content_html, escaped
from catchment.playground.sites.nga.threads import FLOORS_A_PAGE, BoardFloor, BoardThread, uid_of

HEAD = """<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">
<html>
<head>
<meta http-equiv='Content-Type' content='text/html; charset=GBK'>
<title>{title} NGA玩家社区</title>
<script type='text/javascript'>
//loadscriptstart
var __CURRENT_UID = parseInt('',10),
__CURRENT_FID={fid},
__CHARSET = 'GBK';
__ATTACH_BASE_VIEW = 'img.nga.cn',
//loadscriptend
</script>
</head>
<body>
<div id='m_nav' class='module_wrap'>
<div class='nav'><a href='/' class='nav_root'>NGA玩家社区</a><span class='nav_spr'>&raquo;</span>{nav}</div>
</div>
"""
TAIL = "\n<div id='footer' class='cpinfo'></div>\n</body>\n</html>"
PAGES = """<div class='left' name='pageball' id='pagebtop'><span id='pageBtnHere' class='x'></span><script>var __PAGE = {{0:'{path}',1:{count},2:{page},3:{size}}};commonui.pageBtn(document.getElementById('pageBtnHere').parentNode,__PAGE,true)</script></div>
"""  # noqa: E501
ROW = """	<tbody>
		<tr class='row1 topicrow'>
			<td class='c1'><a id='t_rc1_{i}' title='打开新窗口' href='/read.php?tid={real}' class='replies'>{replies}</a></td>
			<td class='c2'>
				<a href='/read.php?tid={real}' id='t_tt1_{i}' class='topic'>{subject}</a>
				<span id='t_pc1_{i}'></span>{parent}
			</td>
			<td class='c3'>
				<a href='/nuke.php?func=ucp&uid={uid}' class='author' id='t_ta1_{i}' title='用户ID {uid}'>{author}</a><span class='silver postdate' id='t_pt1_{i}'>{postdate}</span>
			</td>
			<td class='c4'>
				<a href='/read.php?tid={real}&page=e' class='silver replydate' id='t_rt1_{i}'></a><span class='replyer' id='t_tr1_{i}'>{lastposter}</span>
			</td>
		</tr>
	</tbody><script type='text/javascript'>
commonui.topicArg.add(
't_rc1_{i}','t_tt1_{i}','t_ta1_{i}','t_pt1_{i}',
't_tr1_{i}','t_rt1_{i}','t_pc1_{i}',
'{fid}',{tid},'','','{quote_from}',{postdate},{lastpost},{replies},
{type},'','',
null,'',null,'',''
)</script>
"""  # noqa: E501
FLOOR = """
<table class='forumbox postbox' cellspacing='1px'>
	<tr id='post1strow{n}' class='postrow row2'>
		<td class='c1'>
			<span id='posterinfo{n}' class='posterinfo'>
				<a href='nuke.php?func=ucp&uid={uid}' id='postauthor{n}' class='author b'></a>
			</span>
		</td>
		<td class='c2' id='postcontainer{n}'><a id='pid{pid}Anchor'></a><a name='l{n}'></a>
			<div class='postInfo' id='postInfo{n}'><span id='postdate{n}' title='reply time'>{minute}</span></div>
			<span id='postcontentandsubject{n}'>
				<h3 id='postsubject{n}'>{subject}</h3><br/>
				<{tag} id='postcontent{n}' class='postcontent ubbcode'>{content}</{tag}>
				<br/>
			</span>{edited}{copies}			<div class='clear'></div>
			<div id='postsign{n}' class='x'></div>			</td><td class='adshid'></td>
	</tr>
</table><script>
commonui.postArg.proc( {n},
$('postcontainer{n}'),$('postsubject{n}'),$('postcontent{n}'),$('postsign{n}'),$('posterinfo{n}'),$('postInfo{n}'),$('postBtnPos{n}'),
null,null,{pid},0,
null,'{uid}',{postdate},'0,{score},0','{length}',
'','','7 iOS','',null,0 )
</script>
"""
EDITED = """<h4 class='silver subtitle postbodysubtitle'>改动</h4><span id='alertc{n}'></span><script>commonui.loadAlertInfo('[E{at} 0 0]	','alertc{n}')</script>"""  # noqa: E501
COPY = """<div class='comment_c left'>
		<span id='postcomment{key}'>{content}</span>
<script>
commonui.postArg.proc( '{key}',
$('postcommentcontainer{key}'),$('postcommentsubject{key}'),$('postcomment{key}'),null,$('commentposterinfo{key}'),$('commentInfo{key}'),null,
null,null,{pid},0,
null,'{uid}',{postdate},'0,{score},0',null,
'','',null,'',null,0,1 )
</script>
</div>
"""


def board_page(rows: list[dict[str, Any]], total: int, fid: int, name: str, page: int) -> bytes:
    pages = -(-total // payloads.ROWS_A_PAGE)
    nav = f"<h1><a href='/thread.php?fid={fid}' class='nav_link'>{escaped(name)}</a></h1>"
    path = f"/thread.php?fid={fid}"
    paging = PAGES.format(path=path, count=pages, page=page, size=payloads.ROWS_A_PAGE) if pages > 1 else ""
    shown = "".join(_row(row, index) for index, row in enumerate(rows))
    table = f"""<div id='m_threads' class='module_wrap'>
<table class='forumbox topicrowsnone' cellspacing='1px' id='topicrows'>
	<!--topicliststart-->
{shown}	<!--topiclistend-->
</table></div>
"""
    return _encoded(HEAD.format(title=escaped(name), fid=fid, nav=nav) + paging + table + paging + TAIL)


def _row(row: dict[str, Any], index: int) -> str:
    parent = row.get("parent")
    span = "<span class='titleadd2'><a href='/thread.php?fid={0}' class='silver'>[{1}]</a></span>"
    uid = row["authorid"] if isinstance(row["authorid"], int) else payloads.ANONYMOUS_UID
    subject = f"<span class='silver b'>{row['subject']}</span>" if row.get("denied") else row["subject"]
    told = {**row, "subject": subject, "parent": span.format(parent["0"], parent["2"]) if parent else "", "uid": uid}
    # The link of a mirror leads to the thread itself.
    return ROW.format(i=index, real=row["quote_from"] or row["tid"], **told)


def thread_page(
    thread: BoardThread,
    floors: list[BoardFloor],
    comments: list[BoardFloor],
    fid: int,
    name: str,
    page: int,
    at: datetime,
    scores: dict[str, int],
) -> bytes:
    title = escaped(thread.head.version(at).title)
    replies = thread.replies(at)
    pages = replies // FLOORS_A_PAGE + 1
    nav = (
        f"<a href='/thread.php?fid={fid}' class='nav_link'>{escaped(name)}</a><h1><a class='nav_link'>{title}</a></h1>"
    )
    author = -3 if thread.is_anonymous else uid_of(thread.head.author)
    names = json.dumps(payloads.users([*floors, *comments], thread), ensure_ascii=False).replace("\\t", "\t")
    last = payloads.seconds(thread.last_reply_at(at))
    scripts = f"""<script type='text/javascript'>
//userinfostart
commonui.userInfo.setAll(   {names} )
//userinfoend
commonui.postArg.setDefault({fid},0,{thread.tid},{author},0,"","",",1,","",null,0,{replies},{last},20)
</script>
"""
    path = f"/read.php?tid={thread.tid}"
    paging = PAGES.format(path=path, count=pages, page=page, size=FLOORS_A_PAGE) if pages > 1 else ""
    shown = "".join(_floor(floor, thread, floors, comments, at, scores) for floor in floors)
    posts = f"<div id='m_posts' class='module_wrap'>\n<!--postliststart-->\n{shown}<!--postlistend-->\n</div>\n"
    return _encoded(HEAD.format(title=title, fid=fid, nav=nav) + scripts + paging + posts + paging + TAIL)


def _floor(
    floor: BoardFloor,
    thread: BoardThread,
    floors: list[BoardFloor],
    others: list[BoardFloor],
    at: datetime,
    scores: dict[str, int],
) -> str:
    edited = floor.edited_at(at)
    comments = [other for other in (*floors, *others) if other.comments_on == floor.number]
    popular = sorted(floors[1:], key=lambda other: -scores.get(other.post.id, 0))[:2] if floor.number == 0 else []
    copies = "".join(_copy(f"_{other.pid}", other, thread, at, scores) for other in comments)
    copies += "".join(_copy(f"__{other.pid}", other, thread, at, scores) for other in popular)
    return FLOOR.format(
        n=floor.number,
        pid=floor.pid,
        uid=payloads.uid_on_page(floor, thread),
        minute=payloads.minute(floor.post.shown_from),
        postdate=payloads.seconds(floor.post.shown_from),
        subject=escaped(floor.post.version(at).title) if floor.number == 0 else "",
        tag="p" if floor.number == 0 else "span",
        content=content_html(floor.content(at)),
        length=len(floor.content(at)),
        score=scores.get(floor.post.id, 0),
        edited=EDITED.format(n=floor.number, at=payloads.seconds(edited)) if edited else "",
        copies=copies,
    )


def _copy(key: str, floor: BoardFloor, thread: BoardThread, at: datetime, scores: dict[str, int]) -> str:
    return COPY.format(
        key=key,
        pid=floor.pid,
        uid=payloads.uid_on_page(floor, thread),
        postdate=payloads.seconds(floor.post.shown_from),
        score=scores.get(floor.post.id, 0),
        content=content_html(floor.content(at)),
    )


def _encoded(text: str) -> bytes:
    return text.encode("gb18030")
