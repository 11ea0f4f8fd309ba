import CWebSockets
import Glibc
import MediaCore
import Threading

/// Silent peers, and connections that end without a close message.
extension WebSocketConnection {
    /// Calls `timerFired` after `duration`; this replaces the earlier timer.
    func setTimer(after duration: Duration) {
        guard phase != .closed, let events = service.events else { return }
        timer.start(on: events, after: duration)
    }

    func timerFired() {
        switch phase {
        case .handshaking:
            if case .connecting(let attempt) = role {
                if attempt.isGivingWay(at: MonotonicClock.now) {
                    // Without an attempt under way, the next one has been queued already.
                    guard attempt.isBegun else { return }
                    attempt.schedule.gaveWay()
                    return cutOff()
                }
                // Do not try other addresses.
                attempt.schedule.end()
                if ending == nil { ending = .failed(attempt.timeOutError) }
            }
            cutOff()
        case .open: checkSilence()
        case .closing, .closed: cutOff()
        }
    }

    /// Ends the connection at once and loses unsent data; must not be called in a libwebsockets callback about it.
    ///
    /// As long as libwebsockets holds bytes that the socket did not take, it would go on sending them for 5 s and more.
    /// A failing write makes it give up such a socket.
    func cutOff() {
        checkThread()
        guard let wsi = unsafe wsi else { return service.wsiDestroyed(of: self) }
        if hasUnsentBytes {
            unsafe shutdown(lws_get_socket_fd(wsi), Int32(SHUT_WR))
            // A raw write has no header, but needs room for one.
            let byte = unsafe service.scratch(1)
            unsafe byte.storeBytes(of: 0, as: UInt8.self)
            _ = unsafe lws_write(wsi, byte.assumingMemoryBound(to: UInt8.self), 1, cwebsockets_write_raw)
        }
        unsafe cwebsockets_kill(wsi)
    }

    /// Cuts off a peer that ends while libwebsockets holds bytes for it.
    ///
    /// libwebsockets would go on sending them for 5 s, and would meanwhile read the end of the stream in every turn of
    /// the loop.
    func watchForEnd() {
        guard let events = service.events else { return }
        if endWatcher == nil { endWatcher = ReadWatcher(socket) { [unowned self] in checkEnd() } }
        endWatcher?.start(on: events)
    }

    /// Whether libwebsockets holds bytes that the socket did not take.
    var hasUnsentBytes: Bool {
        guard let wsi = unsafe wsi else { return false }
        return unsafe lws_partial_buffered(wsi) != 0
    }

    private func checkEnd() {
        guard hasUnsentBytes else {
            endWatcher?.stop()
            return
        }
        var byte: UInt8 = 0
        let count = unsafe recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
        guard count == 0 || count < 0 && errno != EAGAIN && errno != EINTR else { return }
        phase = .closing
        cutOff()
    }

    private func checkSilence() {
        let now = MonotonicClock.now
        // Bytes that wait to be read came while this process was stopped, so the peer was not silent.
        if now.duration(since: lastHeard) >= idle.hangUpAfter, hasUnreadBytes { lastHeard = now }
        let silence = now.duration(since: lastHeard)
        guard silence >= idle.pingAfter else {
            return setTimer(after: idle.pingAfter - silence)
        }
        let patience = silence >= idle.hangUpAfter && isMachineReachable ? idle.hangUpStoppedAfter : idle.hangUpAfter
        guard silence < patience else {
            let seconds = Int(silence.seconds.rounded())
            let error = WebSocketError(
                .idleTimeout,
                attempted: "keep the connection with \(peerAddress)",
                advice: "nothing came from the peer for \(seconds) s, not even an answer to a ping."
            )
            phase = .closing
            ending = .failed(error)
            dropUnsent()
            return cutOff()
        }
        ping()
        setTimer(after: min(idle.pingAfter, patience - silence))
    }

    /// Whether the peer's kernel has acknowledged anything in the last two thirds of `hangUpAfter`.
    ///
    /// If the peer reads nothing, the kernel asks for room at intervals that double, so at most half of the silence is
    /// without an answer. If the peer's machine is gone, the last answer is as old as the silence.
    private var isMachineReachable: Bool {
        guard idle.hangUpStoppedAfter > idle.hangUpAfter else { return false }
        guard let time = path.timeSinceAcknowledgement else { return true }
        return time < idle.hangUpAfter * 2 / 3
    }

    private var hasUnreadBytes: Bool {
        var byte: UInt8 = 0
        return unsafe recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
    }

    /// Makes the kernel discard its unsent bytes when the socket is closed, instead of sending them for minutes.
    private func dropUnsent() {
        guard let wsi = unsafe wsi else { return }
        var linger = linger(l_onoff: 1, l_linger: 0)
        unsafe setsockopt(
            lws_get_socket_fd(wsi),
            SOL_SOCKET,
            SO_LINGER,
            &linger,
            socklen_t(MemoryLayout.size(ofValue: linger))
        )
    }
}
