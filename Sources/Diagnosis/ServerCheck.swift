import Glibc
import MediaCore
package import RoomKit
import RoomProtocol
import WebSockets

/// Finds out whether a room server can be joined, and if not, at which step it fails.
package struct ServerCheck: Sendable {
    /// What was found.
    package struct Outcome: Sendable {
        /// The findings, in order.
        package var findings: [Finding] = []
        /// The joined room, which the caller leaves; `nil` if it cannot be joined.
        package var room: Room?
        /// Program and version of the server; `nil` without one.
        package var version: String?
        /// The round trips over the open connection, oldest first.
        package var roundTrips: [Duration] = []
    }

    /// How long a name server may take.
    private static let lookupTime = Duration.seconds(10)
    /// How long each address, and a server's answer, may take.
    private static let answerTime = Duration.seconds(5)
    /// How long all addresses together may take.
    private static let connectTime = Duration.seconds(20)
    /// A lost attempt that takes longer delays every connection so that people notice.
    private static let noticeableDelay = Duration.milliseconds(250)
    /// How many round trips are waited for, and how long; a client asks five times, 50 ms apart.
    private static let roundTrips = 5
    private static let roundTripTime = Duration.seconds(2)

    /// The server, and the room to join.
    package let options: ConnectOptions

    /// A check of the server and by the room of `options`.
    package init(_ options: ConnectOptions) {
        self.options = options
    }

    /// Looks the name up, connects, joins the room, and measures some round trips.
    ///
    /// It takes less than a second if all is well, and at most a minute.
    package func run() async -> Outcome {
        let url: WebSocketURL
        do throws(WebSocketError) {
            url = try WebSocketURL(options.url)
        } catch {
            let advice = "give --url or ROOM_URL as ws://host:port"
            return Outcome(findings: [.problem(.server, error.code.description, "\(error)", advice)])
        }
        let probe = HostProbe(url)
        if let failure = await lookup(with: probe) { return Outcome(findings: [failure]) }
        let attempts = await BlockingCall.run(within: Self.connectTime) { probe.connect(within: Self.answerTime) } ?? []
        guard attempts.last?.status == 0 else {
            return Outcome(findings: Task.isCancelled ? [] : [Self.unreachable(url, attempts)])
        }
        var outcome = await join(url)
        outcome.findings += Self.delays(attempts)
        return outcome
    }

    private func lookup(with probe: HostProbe) async -> Finding? {
        let host = probe.url.host
        let advice = "check the name in --url or ROOM_URL, /etc/resolv.conf and the network"
        switch await BlockingCall.run(within: Self.lookupTime, { probe.resolve() }) {
        case .success: return nil
        case .failure(let failure):
            return .problem(.server, "unknownHost", "the name \(host) does not resolve: \(failure.text)", advice)
        case nil:
            let problem = "no name server has answered for \(host) in \(Int(Self.lookupTime.seconds)) s"
            return Task.isCancelled ? nil : .problem(.server, "unknownHost", problem, advice)
        }
    }

    private func join(_ url: WebSocketURL) async -> Outcome {
        do {
            let began = MonotonicInstant.now
            let room = try await RoomClient.connect(options: options)
            let duration = MonotonicInstant.now.duration(since: began)
            return await measure(room, joinedIn: duration)
        } catch let error as RoomError {
            return Outcome(findings: [await explain(error, url)])
        } catch is CancellationError {
            return Outcome()
        } catch {
            return Outcome(findings: [.problem(.server, "failed", "\(error)", Self.versionAdvice)])
        }
    }

    private func measure(_ room: Room, joinedIn duration: Duration) async -> Outcome {
        let deadline = MonotonicInstant.now + Self.roundTripTime
        while await room.roundTrips.count <= Self.roundTrips, MonotonicInstant.now < deadline, !Task.isCancelled {
            try? await Task.sleep(for: .milliseconds(20))
        }
        var outcome = Outcome(room: room, version: await room.serverVersion, roundTrips: await room.roundTrips)
        let trip = outcome.roundTrips.sorted()
        let best = trip.first.map { ", round trip \($0.millisecondText)" } ?? ""
        outcome.findings = [
            .ok(
                .server,
                "\(options.url): \(outcome.version ?? ""), protocol \(WireFormat.version), joined in "
                    + "\(duration.millisecondText)\(best)"
            )
        ]
        return outcome
    }
}

// MARK: - Sentences

extension ServerCheck {
    private static let versionAdvice = "check the port, and use a server of this client's version (\(roomKitVersion))"

    static func unreachable(_ url: WebSocketURL, _ attempts: [HostProbe.Attempt]) -> Finding {
        let place = WebSocketURL.authority(host: url.host, port: url.port)
        switch attempts.last?.status {
        case ECONNREFUSED:
            return .problem(
                .server,
                "connectionRefused",
                "nothing listens at \(place)",
                isOwn(attempts)
                    ? "start one: room-server, or name another by --url or ROOM_URL"
                    : "start room-server --insecure-listen 0.0.0.0 there, and check the port in --url or ROOM_URL"
            )
        case EHOSTUNREACH, ENETUNREACH:
            return .problem(
                .server,
                "noRoute",
                "no route to \(place)",
                "check this machine's network (ip route), or the address in --url or ROOM_URL"
            )
        case let status? where status != 0 && status != ETIMEDOUT:
            return .problem(
                .server,
                "connectFailed",
                "\(place) cannot be connected to: \(unsafe String(cString: strerror(status)))",
                "look at this machine's firewall and sandbox, and at its limits: room-client doctor --only limits"
            )
        default:
            let reason = attempts.isEmpty ? "no answer" : "no answer within \(Int(answerTime.seconds)) s"
            return .problem(
                .server,
                "timedOut",
                "\(place): \(reason)",
                "see that the server's machine is on and no firewall drops port \(url.port)"
            )
        }
    }

    private static func isOwn(_ attempts: [HostProbe.Attempt]) -> Bool {
        attempts.allSatisfy { $0.address.hasPrefix("127.") || $0.address == "::1" }
    }

    /// Says which addresses fail before one connects, if that takes time.
    static func delays(_ attempts: [HostProbe.Attempt]) -> [Finding] {
        attempts.filter { $0.status != 0 && $0.duration > noticeableDelay }.map { attempt in
            .note(
                .server,
                "slowAddress",
                "\(attempt.address) of the same name fails after \(attempt.duration.millisecondText)",
                "use the numeric address of another in --url, or mend the name's records"
            )
        }
    }

    private func explain(_ error: RoomError, _ url: WebSocketURL) async -> Finding {
        switch error.code {
        case .refused: return Self.refusal(error)
        case .protocolViolation:
            return .problem(.server, error.code.description, "\(error)", Self.versionAdvice)
        default: break
        }
        let target = url.path == "/" ? (try? url.appending(path: RoomPath.path(ofRoom: options.roomName))) : nil
        let probe = HostProbe(target ?? url)
        let answer = await BlockingCall.run(within: Self.connectTime) {
            probe.answer(offering: WireFormat.subprotocol, within: Self.answerTime)
        }
        let place = WebSocketURL.authority(host: url.host, port: url.port)
        guard let answer, let answer else {
            return .problem(.server, error.code.description, "\(error)", "try again")
        }
        return Self.finding(of: answer, at: place) ?? .problem(.server, error.code.description, "\(error)", "try again")
    }

    private static func refusal(_ error: RoomError) -> Finding {
        let code = error.serverCode ?? 0
        let advice =
            switch RoomErrorCode(rawValue: code) {
            case .notAuthorized: "give a valid token by --token or ROOM_TOKEN"
            case .limitReached: "raise the server's limits (--config), or end other clients"
            case .notSupported: versionAdvice
            default: "do what the server says"
            }
        return .problem(.server, "refused", "\(error) (\(code))", advice)
    }

    /// What a server's answer means; `nil` for a room server, whose fault lies elsewhere.
    static func finding(of answer: HostProbe.Answer, at place: String) -> Finding? {
        let portAdvice = "check the port in --url or ROOM_URL: a room server listens at 8480 by default"
        switch answer {
        case .tls:
            let advice = "wss:// is not supported yet: use the port without TLS, or a tunnel (ssh -L)"
            return .problem(.server, "tls", "\(place) speaks TLS", advice)
        case .hungUp:
            return .problem(.server, "hungUp", "\(place) ends the connection without an answer", portAdvice)
        case .silence: return .problem(.server, "silent", "\(place) accepts connections and never answers", portAdvice)
        case .other(let line):
            return .problem(.server, "otherSoftware", "\(place) does not speak HTTP: \"\(line)\"", portAdvice)
        case .http(let status, let server, let subprotocol, let sentence):
            return finding(ofStatus: status, server, subprotocol, sentence, place, portAdvice)
        }
    }

    private static func finding(
        ofStatus status: Int,
        _ server: String,
        _ subprotocol: String,
        _ sentence: String,
        _ place: String,
        _ portAdvice: String
    ) -> Finding? {
        let name = server.isEmpty ? "" : " by \(server)"
        let found = "\(place) answers HTTP \(status)\(name)\(sentence.isEmpty ? "" : ": \"\(sentence)\"")"
        let advice = HTTPRefusal.advice(forStatus: status) ?? portAdvice
        switch status {
        case 101 where subprotocol == WireFormat.subprotocol: return nil
        case 101:
            let words = "\(place) is a WebSocket server\(name) that does not speak \(WireFormat.subprotocol)"
            return .problem(.server, "subprotocolRefused", words, versionAdvice)
        case 401, 403, 407: return .problem(.server, "httpRefused", found, advice)
        case 404: return .problem(.server, "notFound", found, advice)
        case 503 where server.isEmpty: return .problem(.server, "limitReached", found, advice)
        case 502...504:
            return .problem(.server, "proxy", found, "the proxy is there, and room-server behind it is not: start it")
        case 300..<400: return .problem(.server, "redirected", found, "name the server that it points to in --url")
        default: return .problem(.server, "otherSoftware", "\(found): no room server", portAdvice)
        }
    }
}
