"""Runs, gaps, alerts."""

from __future__ import annotations

WORDS = {
    "nav_runs": ("Runs", "运行记录"),
    "nav_gaps": ("Gaps", "缺口"),
    "nav_alerts": ("Alerts", "告警"),
    # runs
    "runs_title": ("Runs", "运行记录"),
    "runs_text": (
        "What was visited, when, and what came of it. A look that finds nothing due leaves no run.",
        "访问了什么、何时访问、结果如何。没有到期来源时不留记录。",
    ),
    "runs_none": ("Nothing was run yet", "还没有运行过"),
    "runs_none_why": (
        "As soon as something is followed and due, its visits appear here.",
        "关注来源并到期后，访问记录会出现在这里。",
    ),
    "run_title": ("Run {id}", "运行 {id}"),
    "run_when": ("When", "时间"),
    "run_job": ("What", "任务"),
    "run_sources": ("Sources", "来源"),
    "run_failed": ("Failed", "失败"),
    "run_skipped": ("Skipped", "跳过"),
    "run_new": ("New", "新增"),
    "run_updated": ("Changed", "变化"),
    "run_duplicate": ("As before", "未变"),
    "run_invalid": ("Not usable", "无法使用"),
    "run_requests": ("Requests", "请求"),
    "run_took": ("Took", "耗时"),
    "run_started": ("Began", "开始"),
    "run_by": ("Started by", "发起者"),
    "run_under_way": ("under way", "进行中"),
    "run_cut": ("cut off", "被中断"),
    "run_results": ("Source by source", "各来源结果"),
    "run_only_failed": ("only what failed", "只看失败"),
    "run_all": ("all", "全部"),
    "run_results_none": ("Nothing to show here", "没有可显示的内容"),
    "run_results_none_why": (
        "No source was visited yet, or none of those that were asked for.",
        "尚未访问任何来源，或没有符合条件的来源。",
    ),
    "started_by:schedule": ("the schedule", "计划任务"),
    "job:collect": ("Visits by command", "命令行访问"),
    # gaps
    "gaps_title": ("Gaps", "缺口"),
    "gaps_text": (
        "Stretches of time in which something was, or may have been, posted that is not kept. No gap is silent.",
        "这些时间段内可能有内容未被保存。每个缺口都会记录。",
    ),
    "gaps_open": ("Open", "未补"),
    "gaps_closed": ("Closed", "已关闭"),
    "gaps_by_source": ("By source", "按来源"),
    "gaps_count_one": ("{count} gap", "{count} 个缺口"),
    "gaps_count_many": ("{count} gaps", "{count} 个缺口"),
    "gaps_all_sources": ("All sources", "全部来源"),
    "gaps_none_open": ("Nothing is known to be missing", "没有已知的缺失"),
    "gaps_none_open_why": (
        "Every walk so far reached what was stored before. If a gap opens, it stands here at once.",
        "到目前为止每次访问都衔接到了已保存的内容。一旦出现缺口会立即显示在这里。",
    ),
    "gaps_none_closed": ("No gap was closed yet", "还没有关闭过缺口"),
    "gaps_none_closed_why": (
        "A gap closes when what lay in it is shown after all.",
        "缺口中的内容后来被看到时，缺口就会关闭。",
    ),
    "gap_opened": ("Noticed", "发现于"),
    "gap_closed": ("Closed", "关闭于"),
    "gap_length": ("{span} long", "长 {span}"),
    "cause:window": (
        "It turned over completely between two visits. A shorter interval helps.",
        "两次访问之间内容全部更新。缩短间隔会有帮助。",
    ),
    "cause:reach": (
        "The platform shows no more than this. A shorter interval helps.",
        "平台只显示这么多。缩短间隔会有帮助。",
    ),
    "cause:cap": ("Our own limit of pages ended the walk.", "达到了我们自己的页数上限。"),
    "cause:money": ("The budget of paid requests ended the walk.", "付费请求的预算用完了。"),
    "cause:repeats": ("The platform's pages go in circles.", "平台的分页出现循环。"),
    "closed:shown again": ("What lay in it was shown after all.", "其中的内容后来又出现了。"),
    # alerts
    "alerts_title": ("Alerts", "告警"),
    "alerts_text": (
        "They open once, and close by themselves when what they tell of is over.",
        "告警只打开一次，问题解决后自动关闭。",
    ),
    "alerts_none": ("No alert is open", "没有未关闭的告警"),
    "alerts_none_why": (
        "If something needs a person, it stands here, with what helps.",
        "需要人工处理的问题会显示在这里，并附上解决办法。",
    ),
    "alerts_over": ("Lately closed", "最近关闭"),
    "alerts_since": ("since {when}", "始于{when}"),
    "severity:P0": ("now", "立即"),
    "severity:P1": ("today", "今天"),
    "severity:P2": ("when there is time", "有空时"),
    "alert:source failing": ("fails again and again", "持续失败"),
    "alert_helps:source failing": (
        "Its page says why, and what helps. It is tried again by itself, less and less often.",
        "来源页面说明了原因和办法。系统会自动重试，间隔逐渐变长。",
    ),
    "alert:source silent": ("has gone silent", "长时间没有新内容"),
    "alert_helps:source silent": (
        "Look at it in a browser: has it moved, or does it show programs something else?",
        "请在浏览器中查看：它是否已搬迁，或对程序显示不同内容？",
    ),
    "alert:platform silent": ("shows nothing new anywhere", "整个平台没有新内容"),
    "alert_helps:platform silent": (
        "The platform is down, or blocks us. See in a browser whether it answers there.",
        "平台可能故障，或屏蔽了我们。请在浏览器中确认它是否正常。",
    ),
    "alert:platform calls": ("is asked almost as often as it allows", "请求次数接近上限"),
    "alert_helps:platform calls": (
        "Follow less of it, or less often; or add a credential.",
        "请减少关注或调长间隔，或添加凭据。",
    ),
    "alert:platform budget": ("does not allow as much as is followed", "请求额度不够用"),
    "alert_helps:platform budget": (
        "Follow less of it, or less often; or add a credential. The overview shows the forecast.",
        "请减少关注或调长间隔，或添加凭据。概览中有预测。",
    ),
    "alert:redis away": ("Redis is away", "Redis 不可用"),
    "alert_helps:redis away": (
        "The database does its work meanwhile. See that Redis runs, or unset CATCHMENT_REDIS_URL.",
        "暂由数据库代替。请确认 Redis 在运行，或取消 CATCHMENT_REDIS_URL。",
    ),
    "alert:platform visits": ("fails more often than it should", "失败次数过多"),
    "alert_helps:platform visits": (
        "The sources that fail come first in the list of sources, each with the reason.",
        "来源列表中失败的排在前面，并附有原因。",
    ),
    "alert:hot hits": ("The hot store is of little help", "热数据命中率低"),
    "alert_helps:hot hits": (
        "Is Redis away, is HOT_CACHE_TTL_HOURS too short, or is collecting late?",
        "Redis 是否不可用、HOT_CACHE_TTL_HOURS 是否太短，或采集是否延迟？",
    ),
    "alert:collecting stalled": ("Nothing is collected any more", "采集已停滞"),
    "alert_helps:collecting stalled": (
        "Is the network there, and is somebody refusing us? The latest runs say more.",
        "网络是否正常？是否被拒绝？最近的运行记录有更多信息。",
    ),
    "alert:warm-up": ("first visits do not get on", "首次访问进展缓慢"),
    "alert_helps:warm-up": (
        "The budget of the platform may be used up; the overview shows it.",
        "平台的请求额度可能已用完，见概览。",
    ),
    "alert:listener failing": ("does not take its events", "未能接收事件"),
    "alert_helps:listener failing": (
        "See that the receiver runs: `catchment webhooks list` tells how far it is.",
        "请确认接收方在运行：`catchment webhooks list` 显示其进度。",
    ),
    "alert:pool exhausted": ("has no usable credential", "没有可用凭据"),
    "alert_helps:pool exhausted": (
        "Resume one, or add another: `catchment credentials add`.",
        "请恢复一个凭据，或添加新的：`catchment credentials add`。",
    ),
    "alert:credential refused": ("is refused", "被拒绝"),
    "alert_helps:credential refused": (
        "Test it: `catchment credentials test`. If it does not work any more, replace it.",
        "请测试：`catchment credentials test`。若已失效请更换。",
    ),
    "alert:credential expiring": ("ends soon, or has ended", "即将或已经过期"),
    "alert_helps:credential expiring": (
        "Replace it in time: `catchment credentials add … --replace`.",
        "请及时更换：`catchment credentials add … --replace`。",
    ),
}
