"""What went wrong, by its code, and what helps. The exact words of an error stand beside it, as they were said."""

from __future__ import annotations

WORDS = {
    "error:INTERNAL": (
        "An error inside catchment. Please report it, with the log of that moment.",
        "catchment 内部错误。请附上当时的日志反馈给我们。",
    ),
    "error:INVALID_INPUT": ("Something that was given is not right.", "填写的内容有误。"),
    "error:BAD_SETTING": ("A setting cannot be used as it is written.", "某个设置的写法无法使用。"),
    "error:NOT_FOUND": ("There is no such thing here.", "这里没有这个对象。"),
    "error:CONFLICT": ("It is there already, or somebody else has it.", "它已经存在，或正被占用。"),
    "error:STORE_ERROR": (
        "The database could not do it. See that it runs and has room on its disk; nothing stored is lost.",
        "数据库无法完成操作。请确认它在运行且磁盘有空间；已保存的内容不会丢失。",
    ),
    "error:SCHEMA_MISMATCH": (
        "The database belongs to another version. Run `catchment migrate`.",
        "数据库属于另一个版本。请运行 `catchment migrate`。",
    ),
    "error:LEASE_LOST": (
        "Another process has taken it over, and finishes it.",
        "另一个进程已接手，并会完成它。",
    ),
    "error:VAULT_ERROR": (
        "A credential cannot be opened. Set COOKIE_MASTER_KEY to the key that it was locked with, or add it anew.",
        "凭据无法打开。请将 COOKIE_MASTER_KEY 设为加密时的密钥，或重新添加该凭据。",
    ),
    "error:STOPPED": ("It was stopped, and goes on next time.", "已被停止，下次继续。"),
    "error:HOOK_FAILED": (
        "A hook raised an error; it gets the same event again.",
        "钩子程序出错；同一事件会再次发送给它。",
    ),
    "error:PLATFORM_ERROR": (
        "Something went wrong at the other end. It is asked again by itself.",
        "对方出了问题。会自动重试。",
    ),
    "error:NETWORK_ERROR": (
        "No connection came about. It is tried again; if all sources have this, look at your own line, DNS and proxy.",
        "无法建立连接，会自动重试。如果所有来源都这样，请检查本机网络、DNS 和代理。",
    ),
    "error:TIMEOUT_ERROR": (
        "The answer took too long. It is tried again; for a site that is always slow, raise CATCHMENT_TIMEOUT_SECONDS.",
        "对方响应太慢，会自动重试。对于一直很慢的网站，可调大 CATCHMENT_TIMEOUT_SECONDS。",
    ),
    "error:SERVER_TROUBLE": (
        "The site has trouble of its own. It usually passes, and is tried again.",
        "网站自身出了故障，通常会恢复，系统会自动重试。",
    ),
    "error:SLOW_DOWN": (
        "We were asked to wait, and do. If it comes often, give the source a longer interval.",
        "对方要求稍后再来，我们照办。如果经常出现，请调长该来源的间隔。",
    ),
    "error:UNREADABLE": (
        "What came cannot be read. Open the address in a browser: it may have moved, or be closed for repairs.",
        "收到的内容无法解析。请在浏览器中打开该地址：它可能已搬迁或正在维护。",
    ),
    "error:TOO_LARGE": (
        "The answer is larger than what is allowed. If the source is worth it, raise CATCHMENT_MAX_BYTES.",
        "响应超过了大小上限。如果值得，可调大 CATCHMENT_MAX_BYTES。",
    ),
    "error:MISSING": (
        "There is nothing at this address (404). Has it moved? Follow the new address, and remove this one.",
        "该地址没有内容（404）。是否已搬迁？请关注新地址并移除此来源。",
    ),
    "error:GONE": (
        "It is gone for good (410). Remove it, or follow its new address.",
        "它已永久消失（410）。请移除它，或关注其新地址。",
    ),
    "error:REFUSED": (
        "The site refuses us. See in a browser whether it is public; it may want a credential, or no programs at all.",
        "网站拒绝访问。请在浏览器中确认它是否公开；它可能需要凭据，或不允许程序访问。",
    ),
    "error:DISALLOWED": (
        "The site's robots.txt asks programs to stay away. Follow its feed, or another page.",
        "网站的 robots.txt 不允许程序访问。请改为关注其订阅源或其他页面。",
    ),
    "error:LOGIN_NEEDED": (
        "It wants a login. Add or renew the credential: `catchment credentials add PLATFORM NAME --replace`.",
        "需要登录。请添加或更新凭据：`catchment credentials add PLATFORM NAME --replace`。",
    ),
    "error:COOKIE_EXHAUSTED": (
        "None of the platform's credentials can be used now. Resume one, or add another: `catchment credentials add`.",
        "该平台目前没有可用凭据。请恢复一个，或添加新的：`catchment credentials add`。",
    ),
    "error:ADDRESS_REFUSED": (
        "This address may not be asked. If it lies in your own network, set CATCHMENT_ALLOW_PRIVATE_NETWORKS.",
        "不允许访问该地址。如果它在你自己的网络中，请设置 CATCHMENT_ALLOW_PRIVATE_NETWORKS。",
    ),
    "error:STALE_ANSWER": (
        "An old answer came, perhaps from a cache. It is asked again, and believed if it stays so.",
        "收到的是旧内容，可能来自缓存。会再次询问；若一直如此则采信。",
    ),
    "error:HELD": (
        "Another process was collecting it at that moment; the visit was skipped.",
        "当时另一个进程正在采集它；本次访问已跳过。",
    ),
    "error:CUT_OFF": (
        "The process ended before this visit did. What it had stored is kept; it is visited again.",
        "进程在访问结束前终止。已保存的内容保留，稍后会再次访问。",
    ),
    "error:NOT_VISITED": (
        "The round ended before its turn came; it is as due as before.",
        "轮到它之前本轮已结束；它仍在等待访问。",
    ),
    "error:UNAUTHORIZED": ("No key, or none that is known.", "没有密钥，或密钥无效。"),
}
