import Capture
import FoundationEssentials
import MediaCore
import RoomProtocol
import Threading
import WebSockets

/// The properties with which a track is announced.
private struct Offer {
    var codec: TrackCodec
    var dimensions: Dimensions
    var frameRate: FrameRate
    /// The encodings, the smallest first.
    var plans: [EncodingPlan]

    /// The encodings as they are announced; `nil` if there is one.
    var simulcastLayers: [SimulcastLayer]? { plans.announced(for: dimensions, of: codec) }
}

/// Publishes tracks, from starting the source to the server's answer, and withdraws them.
extension Room {
    func publish(_ track: LocalVideoTrack, options: VideoPublishOptions) async throws {
        guard !link.hasEnded else { throw link.ending }
        let publisher = VideoPublisher(
            options: options,
            contentHint: track.source.contentHint,
            isRelaying: track.source is any EncodedVideoSource,
            isScreencast: track.source.isScreencast,
            requestFrame: { [weak source = track.source] in source?.requestFrame() }
        )
        let publication = Publication(track, publisher)
        if let former = track.attach(publisher), !former.isEnding { throw alreadyPublished(track) }
        publications.add(publication)
        let settled = publication.settled
        finishLater { _ = await settled.value() }
        defer { settled.fulfill(()) }
        do {
            try await takePlace(publication)
            try await start(publication)
        } catch {
            publication.watch?.cancel()
            await stop(track, publisher)
            publications.remove(publication)
            publisher.retire()
            throw error
        }
    }

    /// Waits until the track has no other publisher.
    private func takePlace(_ publication: Publication) async throws {
        while let former = publication.track.attach(publication.publisher) {
            guard former.isEnding else { throw alreadyPublished(publication.track) }
            // It is being unpublished, or its session is over. Its source and encoder take a moment to stop.
            // One that never stops must not hold up the end of the task, of this publication or of this session, too.
            while !former.isOver {
                try check(publication)
                await former.untilRetired(within: .milliseconds(200))
            }
        }
        // It may have been withdrawn a moment ago: then nothing stops the source any more.
        try check(publication)
    }

    private func alreadyPublished(_ track: LocalVideoTrack) -> RoomError {
        RoomError(.alreadyPublished, "The track \"\(track.name)\" is published already.")
    }

    /// Starts a track's source, announces the track with the source's size and rate, and begins to encode.
    private func start(_ publication: Publication) async throws {
        let track = publication.track
        publication.watch = reportEvents(of: publication)
        do {
            try await track.startSource(for: publication.publisher)
        } catch {
            // What ended the start is the reason, and not that the source was stopped by it.
            try check(publication)
            throw error
        }
        let dimensions = await firstDimensions(of: publication)
        try check(publication)
        guard let dimensions else {
            if let failure = track.source.failure { throw failure }
            throw noFrame(of: publication)
        }
        let rate = Self.frameRate(of: track, for: publication.publisher)
        let codec = TrackCodec.forPublishing
        guard codec.allows(dimensions) else { throw tooLarge(dimensions, for: codec) }
        let processors = ProcessInfo.processInfo.activeProcessorCount
        let plans = publication.publisher.plans(for: dimensions, processors: processors)
        let offer = Offer(codec: codec, dimensions: dimensions, frameRate: rate, plans: plans)
        let info = try await announce(publication, offer)
        do {
            // Since the answer, the session may have ended or the track may have been withdrawn.
            try check(publication)
            try begin(publication, offer, info)
        } catch {
            send(.unpublish(Unpublish(trackId: info.id)))
            throw error
        }
    }

    /// The size of a track's first picture; `nil` if none comes in time.
    ///
    /// Frames that are compressed already come without a keyframe for as long as their encoder likes.
    private func firstDimensions(of publication: Publication) async -> Dimensions? {
        let (track, publisher) = (publication.track, publication.publisher)
        let patience = track.firstFramePatience
        let end = MonotonicClock.now + (publisher.relay == nil ? patience : Self.keyframePatience)
        var captured = 0
        while true {
            if let dimensions = await publisher.firstDimensions(within: patience) { return dimensions }
            let count = track.statistics.framesCaptured
            guard publisher.relay != nil, count > captured, MonotonicClock.now < end else { return nil }
            captured = count
        }
    }

    /// How long frames may come without a keyframe; encoders that are not told otherwise make one within this time.
    private static let keyframePatience = Duration.seconds(60)

    private func noFrame(of publication: Publication) -> RoomError {
        let name = publication.track.name
        guard publication.publisher.relay != nil, publication.track.statistics.framesCaptured > 0 else {
            return RoomError(.noFramesCaptured, "The source of \"\(name)\" delivered no frame.")
        }
        let words = "The frames of \"\(name)\" have had no keyframe; let their encoder make one every few seconds."
        return RoomError(.noFramesCaptured, words)
    }

    /// The rate that a track is announced and encoded with; 30 if neither the source nor a request says one.
    private static func frameRate(of track: LocalVideoTrack, for publisher: VideoPublisher) -> FrameRate {
        track.frameRate(for: publisher) ?? FrameRate(30)
    }

    /// Begins to report the events of a track's source as events of the room.
    ///
    /// It begins before the source starts, so that the user learns at once of a camera that gives no picture. A failure
    /// of the source is reported only once the track is published: if it makes `publish` fail, the thrown error reports
    /// it.
    private func reportEvents(of publication: Publication) -> Task<Void, Never> {
        let (track, settled) = (publication.track, publication.settled)
        let events = track.source.captureEvents()
        return Task { [eventQueue, publisher = publication.publisher] in
            for await event in events {
                let isEnd = event.isEnd
                if isEnd { _ = await settled.value() }
                guard !Task.isCancelled else { return }
                eventQueue.put(RoomEvent(event, of: track))
                guard isEnd else { continue }
                // The others learn that nothing more comes, unless the source was started again meanwhile.
                // Not while the track is being unpublished: the server would leave out the frames that are on their way.
                guard (try? await Task.sleep(for: Self.lastPictureTime)) != nil else { return }
                await publisher.announceEnabled()
            }
        }
    }

    /// How long the last picture of a source that has ended is shown as live: it may still be on its way.
    private static let lastPictureTime = Duration.seconds(1)

    /// Throws if the publication must not continue: the task is cancelled, the session over or the track withdrawn.
    private func check(_ publication: Publication) throws {
        try Task.checkCancellation()
        if link.hasEnded { throw link.ending }
        if publication.isWithdrawn { throw Publication.unpublished }
    }

    private func tooLarge(_ dimensions: Dimensions, for codec: TrackCodec) -> RoomError {
        let limit = codec.maximumDimensions
        return RoomError(
            .encodingFailed,
            "Pictures of \(dimensions) cannot be published: they have more pixels than \(limit). Choose a smaller size."
        )
    }

    private func announce(_ publication: Publication, _ offer: Offer) async throws -> TrackInfo {
        let requestID = publications.beginRequest(for: publication)
        defer { publications.endRequest(requestID) }
        guard let reply = publication.reply else { throw Publication.unpublished }
        let message = ClientMessage.publish(
            Publish(
                requestId: requestID,
                name: publication.track.name,
                kind: offer.codec.kind,
                source: publication.track.sourceKind,
                codec: offer.codec.name,
                width: offer.dimensions.width,
                height: offer.dimensions.height,
                frameRate: offer.frameRate.framesPerSecond,
                simulcastLayers: offer.simulcastLayers
            )
        )
        if publications.note(requestID, message) { send(message) }
        guard let result = await reply.value(within: .seconds(10)) else {
            // The answer came at the last moment, after we gave up: withdraw the track that it accepts.
            if case .success(let info)? = reply.current { send(.unpublish(Unpublish(trackId: info.id))) }
            try Task.checkCancellation()
            publications.forgetRequest(before: requestID)
            throw RoomError(.connectionLost, "The server did not answer the request to publish in time.")
        }
        return try result.get()
    }

    private func begin(
        _ publication: Publication,
        _ offer: Offer,
        _ info: TrackInfo
    ) throws(RoomError) {
        let (track, publisher) = (publication.track, publication.publisher)
        // A server that does not know simulcast does not repeat the encodings in its answer, and drops all but layer 0.
        let isSimulcast = info.simulcastLayers?.count == offer.plans.count
        let requestWrite: @Sendable () -> Void = { [path] in path.value.requestWrite() }
        let route = PublishingRoute(
            trackID: info.id,
            codec: offer.codec,
            packetizer: Packetizer(trackAlias: info.alias),
            plans: isSimulcast || offer.plans.count == 1 ? offer.plans : [publisher.singlePlan],
            dimensions: publisher.encodedDimensions ?? offer.dimensions,
            frameRate: offer.frameRate,
            readFrameRate: { [weak track, weak publisher] in
                guard let track, let publisher else { return nil }
                return Self.frameRate(of: track, for: publisher)
            },
            clock: clock,
            uplink: uplink,
            wake: { [loop] in loop.execute(requestWrite) },
            announceEnabled: { [weak self] in await self?.announceEnabled(trackID: info.id) },
            announceChanges: { [weak self] in Task { await self?.announceChanges(trackID: info.id) } },
            // An event that nobody reads keeps its track, which keeps these.
            reportFailure: { [weak eventQueue, weak track] failure in
                if let track { eventQueue?.put(.localTrackFailed(track, failure)) }
            },
            reportDimensions: { [weak eventQueue, weak track] size in
                if let track { eventQueue?.put(.localTrackDimensionsChanged(track, size)) }
            }
        )
        publisher.setWanted(publications.wantedLayers(of: info.id))
        publication.announced.frameRate = offer.frameRate.framesPerSecond
        publication.announced.encodings = isSimulcast ? offer.simulcastLayers : nil
        try publisher.begin(route)
        publications.accepted(publication, as: info.id)
        for lane in publisher.lanes { path.value.add(lane) }
        // It may have changed since the first picture.
        publisher.showPresentShape()
        announceEnabled(trackID: info.id)
        announceChanges(trackID: info.id)
    }

    /// Tells the server whether a track is enabled, if that has changed.
    ///
    /// The state is read here and not by the caller: otherwise the caller that arrives last would win, even with an old
    /// value.
    func announceEnabled(trackID: String) {
        guard let publication = publications.publication(withID: trackID) else { return }
        let isEnabled = publication.publisher.isSending
        guard isEnabled != publication.announcedEnabled else { return }
        publication.announcedEnabled = isEnabled
        send(isEnabled ? .enable(Enable(trackId: trackID)) : .disable(Disable(trackId: trackID)))
    }

    /// Tells the server a track's frame rate and its encodings' highest bitrates and largest sizes, if they have changed.
    ///
    /// The server chooses by them what each subscriber gets. It is told once a second at most, because it compares all
    /// subscribers then, and limits how often.
    private func announceChanges(trackID: String) {
        guard let publication = publications.publication(withID: trackID) else { return }
        let former = publication.announced
        let present = publication.publisher.changeableProperties ?? former
        guard present != former else { return }
        let now = MonotonicClock.now
        if let next = publication.nextAnnouncement, now < next {
            guard !publication.isAnnouncementDue else { return }
            publication.isAnnouncementDue = true
            Task { [weak self] in
                try? await Task.sleep(for: next.duration(since: now))
                await self?.announceDueChanges(trackID: trackID)
            }
            return
        }
        publication.announced = present
        publication.nextAnnouncement = now + Self.announcementInterval
        send(.updateTrack(present.update(of: trackID, since: former)))
    }

    private func announceDueChanges(trackID: String) {
        publications.publication(withID: trackID)?.isAnnouncementDue = false
        announceChanges(trackID: trackID)
    }

    private static var announcementInterval: Duration { .seconds(1) }

    /// The tracks that are published now.
    var localTracks: [LocalVideoTrack] { publications.published.map(\.track) }

    // MARK: Withdrawing

    func unpublish(_ track: LocalVideoTrack) async {
        // One may be ending, and another wait for its end.
        let withdrawals = publications.all.filter { $0.track === track }.map { withdraw($0) }
        for withdrawal in withdrawals { await withdrawal.value }
    }

    /// Begins to withdraw a track, only once; the returned task finishes when the track's threads have ended.
    func withdraw(_ publication: Publication) -> Task<Void, Never> {
        if let withdrawal = publication.withdrawal { return withdrawal }
        publication.publisher.willEnd()
        // This needs a task of its own, because a cancelled task would not wait.
        let withdrawal = Task {
            await publication.trackID == nil ? abandon(publication) : end(publication)
        }
        publication.withdrawal = withdrawal
        return withdrawal
    }

    /// Makes a running `publish` fail, and waits until it has failed.
    private func abandon(_ publication: Publication) async {
        publication.isWithdrawn = true
        publication.giveUp()
        // The source's start may wait for something that never comes, such as a pipe's writer.
        await publication.track.stopSource(for: publication.publisher)
        _ = await publication.settled.value()
    }

    private func end(_ publication: Publication) async {
        let publisher = publication.publisher
        publication.watch?.cancel()
        await stop(publication.track, publisher)
        // First send the frames that are already encoded.
        path.value.requestWrite()
        let deadline = MonotonicClock.now + .milliseconds(500)
        for lane in publisher.lanes {
            await lane.sendQueue.drain(within: max(.zero, deadline.duration(since: MonotonicClock.now)))
            lane.sendQueue.close()
        }
        defer { publisher.retire() }
        // The session may have ended meanwhile.
        guard publications.remove(publication), let trackID = publication.trackID else { return }
        for lane in publisher.lanes { path.value.remove(lane) }
        send(.unpublish(Unpublish(trackId: trackID)))
    }

    /// Stops a track's source, then its encoder.
    private func stop(_ track: LocalVideoTrack, _ publisher: VideoPublisher) async {
        await track.stopSource(for: publisher)
        await publisher.stop()
    }

    /// Ends all tracks that are published, or about to be, after the session's end.
    func endPublications(with error: RoomError) {
        for publication in publications.end(with: error) {
            publication.watch?.cancel()
            publication.publisher.willEnd()
            publication.publisher.giveUpWaiting()
            for lane in publication.publisher.lanes {
                lane.sendQueue.close()
                path.value.remove(lane)
            }
            let (track, publisher) = (publication.track, publication.publisher)
            guard publication.trackID != nil else {
                // The source's start may wait for something that never comes, such as a pipe's writer.
                finishLater { await track.stopSource(for: publisher) }
                continue
            }
            finishLater { [self] in
                await stop(track, publisher)
                publisher.retire()
            }
        }
    }
}

extension CaptureEvent {
    /// Whether the source delivers no further frames.
    fileprivate var isEnd: Bool {
        switch self {
        case .failed, .finished: true
        case .interrupted, .interruptionEnded, .noFramesCaptured, .warning: false
        }
    }
}

extension RoomEvent {
    /// The event of the room for an event of a published track's source.
    fileprivate init(_ event: CaptureEvent, of track: LocalVideoTrack) {
        switch event {
        case .interrupted(let error): self = .localTrackInterrupted(track, error)
        case .interruptionEnded: self = .localTrackInterruptionEnded(track)
        case .warning(let error), .noFramesCaptured(let error): self = .localTrackWarning(track, error)
        case .failed(let error): self = .localTrackFailed(track, error)
        case .finished: self = .localTrackFinished(track)
        }
    }
}
