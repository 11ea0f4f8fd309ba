import Capture
import MediaCore
import RoomProtocol
import Threading
import WebSockets

/// Publishing: from a track's source to the server's word that it is in the room, and back.
extension Room {
    func publish(_ track: LocalVideoTrack, options: VideoPublishOptions) async throws {
        guard !hasEnded else { throw ending }
        let publisher = VideoPublisher(options: options, renderers: track.renderers)
        guard track.attach(publisher) else {
            throw RoomError(.alreadyPublished, "The track \"\(track.name)\" is published already.")
        }
        let settled = Promise<Void>()
        finishLater { _ = await settled.value() }
        waitingPublishers.append((track, publisher))
        defer {
            waitingPublishers.removeAll { $0.publisher === publisher }
            settled.fulfill(())
        }
        do {
            try await start(track, publisher)
        } catch {
            await stop(track, publisher)
            publisher.retire()
            throw error
        }
    }

    /// Starts a track's source, announces the track with what the source delivers, and begins to encode.
    func start(_ track: LocalVideoTrack, _ publisher: VideoPublisher) async throws {
        let events = track.source.captureEvents()
        try await track.startSource(for: publisher)
        let dimensions = await publisher.firstDimensions(within: track.firstFramePatience)
        try Task.checkCancellation()
        guard !hasEnded else { throw ending }
        guard let dimensions else {
            if let failure = track.source.failure { throw failure }
            throw noFrames(of: track)
        }
        let rate = track.expectedFrameRate(for: publisher)
        let info = try await announce(track, dimensions: dimensions, frameRate: rate)
        // The session may have ended between the answer and now.
        guard !hasEnded else { throw ending }
        try begin(track, publisher, info, frameRate: rate)
        let watch = Task { [weak self] in
            for await case .failed(let failure) in events { await self?.report(failure, of: track) }
        }
        publishers[publishers.count - 1].watch = watch
    }

    private func noFrames(of track: LocalVideoTrack) -> RoomError {
        RoomError(.noFramesCaptured, "The source of \"\(track.name)\" delivered no frame.")
    }

    func unpublish(_ track: LocalVideoTrack) async {
        guard let publication = publishers.first(where: { $0.track === track }) else { return }
        let publisher = publication.publisher
        publication.watch?.cancel()
        await stop(track, publisher)
        await flush(publisher.sendQueue)
        defer { publisher.retire() }
        // The session may have ended meanwhile, or somebody else have done the same.
        guard let index = publishers.firstIndex(where: { $0.publisher === publisher }) else { return }
        publishers.remove(at: index)
        path.value.remove(publisher.sendQueue)
        wantedLayers[publication.trackID] = nil
        send(.unpublish(Unpublish(trackId: publication.trackID)))
    }

    func report(_ failure: any Error, of track: LocalVideoTrack) {
        happenings.put(.localTrackFailed(track, failure))
    }

    /// The tracks that are published at present.
    var localTracks: [LocalVideoTrack] { publishers.map(\.track) }

    func announce(
        _ track: LocalVideoTrack,
        dimensions: Dimensions,
        frameRate: FrameRate
    ) async throws -> TrackInfo {
        let requestID = nextRequestID
        nextRequestID += 1
        let reply = Promise<Result<TrackInfo, RoomError>>()
        publishReplies[requestID] = reply
        defer { publishReplies[requestID] = nil }
        send(
            .publish(
                Publish(
                    requestId: requestID,
                    name: track.name,
                    source: track.sourceKind,
                    width: dimensions.width,
                    height: dimensions.height,
                    frameRate: frameRate.framesPerSecond
                )
            )
        )
        guard let result = await reply.value(within: .seconds(10)) else {
            // An answer in the last moment: nobody will publish what it accepts.
            if case .success(let info)? = reply.current { send(.unpublish(Unpublish(trackId: info.id))) }
            try Task.checkCancellation()
            throw RoomError(.connectionLost, "The server did not answer the request to publish in time.")
        }
        return try result.get()
    }

    private func begin(
        _ track: LocalVideoTrack,
        _ publisher: VideoPublisher,
        _ info: TrackInfo,
        frameRate: FrameRate
    ) throws(RoomError) {
        let requestWrite: @Sendable () -> Void = { [path] in path.value.requestWrite() }
        let route = VideoPublisher.Route(
            trackID: info.id,
            packetizer: Packetizer(trackAlias: info.alias),
            frameRate: frameRate,
            clock: clock,
            wake: { [loop] in loop.execute(requestWrite) },
            announceEnabled: { [weak self] isEnabled in await self?.announce(isEnabled: isEnabled, trackID: info.id) },
            reportFailure: { [happenings, weak track] failure in
                if let track { happenings.put(.localTrackFailed(track, failure)) }
            }
        )
        publisher.setWanted(wantedLayers[info.id].map { !$0.isEmpty } ?? false)
        do throws(RoomError) {
            try publisher.begin(route)
        } catch {
            wantedLayers[info.id] = nil
            send(.unpublish(Unpublish(trackId: info.id)))
            throw error
        }
        publishers.append(Publication(track: track, trackID: info.id, publisher: publisher))
        path.value.add(publisher.sendQueue)
        if !track.isEnabled { announce(isEnabled: false, trackID: info.id) }
    }

    func announce(isEnabled: Bool, trackID: String) {
        send(isEnabled ? .enable(Enable(trackId: trackID)) : .disable(Disable(trackId: trackID)))
    }

    /// Stops a track's source, then its encoder.
    func stop(_ track: LocalVideoTrack, _ publisher: VideoPublisher) async {
        await track.stopSource(for: publisher)
        await publisher.stop()
    }

    /// Lets the frames that are encoded go out, for at most half a second.
    func flush(_ queue: SendQueue) async {
        for _ in 0..<100 where !queue.isEmpty && !hasEnded {
            path.value.requestWrite()
            try? await Task.sleep(for: .milliseconds(5))
        }
    }
}
